// Softmax rows against the reference: random axes, shapes, layouts, units and thread counts.
#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/test_tensor.h"
#include "families/family.h"
#include "families/softmax/softmax.h"

namespace sparkle::cpu {
namespace {

void check(const Dims& shape, const Layout& from, const Layout& to, const SoftmaxParams& params, TestRandom& random,
           const std::string& note) {
  Stage stage;
  stage.params = params;
  stage.inputs.push_back({DType::f32, shape, from});
  stage.outputs.push_back({DType::f32, shape, to});
  TestTensor x(stage.inputs[0]), want(stage.outputs[0]);
  const double spread = random.chance(30) ? 20 : 2;
  x.fill([&] { return spread * random.normal() + 5; });
  const TensorView x_view = x.view(), want_view = want.view();
  softmax_info().reference(params, {&x_view, 1}, {&want_view, 1});
  double count = 1;
  for (int i = params.first_axis; i <= params.last_axis; ++i) count *= static_cast<double>(shape[i]);
  for (const std::string& unit : test_units()) {
    for (int threads : {1, 2}) {
      auto kernel = make_softmax(stage, LoopSchedule{"rows", unit, 0}, Device{}, 0);
      ASSERT_TRUE(kernel.ok()) << kernel.error().message;
      ThreadPool pool(threads);
      TestTensor got(stage.outputs[0]);
      std::byte *const in = x.origin(), *const out = got.origin();
      std::vector<float> workspace(static_cast<size_t>((*kernel)->workspace_bytes()) / 4 + 1, 77.0f);
      (*kernel)->run({{&in, 1}, {&out, 1}, reinterpret_cast<std::byte*>(workspace.data()), &pool});
      ASSERT_EQ(workspace.back(), 77.0f) << note << " wrote past its workspace";
      ASSERT_TRUE(got.sentinels_hold()) << note << " on " << unit;
      for_each_index(shape, [&](const Dims& at) {
        const double w = want.at(at);
        // Rounding of x - max (its size is up to |w| for the logarithm) and of the sum.
        const double bound =
            params.logarithm ? 3e-7 * (std::abs(w) + 10 + std::sqrt(count)) : w * (1e-5 + 3e-7 * std::sqrt(count));
        ASSERT_TRUE(close(got.at(at), w, bound + 1e-37))
            << note << " on " << unit << " shape " << shape.to_string() << " axes " << params.first_axis << ".."
            << params.last_axis << " at " << at.to_string() << " got " << got.at(at) << " want " << w;
      });
    }
  }
}

TEST(Softmax, RandomRowsMatchTheReference) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    TestRandom random(seed);
    const int rank = static_cast<int>(random.between(1, 4));
    const Dims shape = random.shape(rank, rank == 1 ? 3000 : rank == 2 ? 150 : 17);
    SoftmaxParams params;
    params.first_axis = static_cast<int>(random.between(0, rank - 1));
    params.last_axis = random.chance(70) ? params.first_axis : static_cast<int>(random.between(params.first_axis, rank - 1));
    params.logarithm = random.chance(40);
    const Layout from = random.layout(shape);
    check(shape, from, random.chance(60) ? from : random.layout(shape), params, random, "seed " + std::to_string(seed));
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(Softmax, TypicalHeadsMatchTheReference) {
  TestRandom random(3);
  const Dims classes{64, 1000}, detection{1, 21, 4000}, map{2, 19, 33, 40};
  for (const bool logarithm : {false, true}) {
    check(classes, row_major(classes), row_major(classes), {1, 1, logarithm}, random, "classes");
    check(detection, row_major(detection), row_major(detection), {1, 1, logarithm}, random, "strided classes");
    check(map, channels_last(map), channels_last(map), {1, 1, logarithm}, random, "segmentation");
    for (int64_t columns : {2, 4, 8}) {
      for (int64_t count : {1, 3, 16, 49, 196}) {
        const Dims heads{5, count, columns};
        check(heads, row_major(heads), row_major(heads), {1, 1, logarithm}, random, "heads beside each other");
      }
    }
  }
}

}  // namespace
}  // namespace sparkle::cpu
