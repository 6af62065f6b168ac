// Vector reductions against the reference: random axes, shapes, layouts, kinds, units and thread counts.
#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/test_tensor.h"
#include "families/family.h"
#include "families/reduce/reduce.h"

namespace sparkle::cpu {
namespace {

void check(const Dims& shape, const Layout& layout, const ReduceParams& params, TestRandom& random, const std::string& note) {
  Stage stage;
  stage.params = params;
  stage.inputs.push_back({DType::f32, shape, layout});
  Dims reduced = shape;
  double count = 1;
  for (int64_t axis : params.axes) {
    count *= static_cast<double>(shape[static_cast<int>(axis)]);
    reduced[static_cast<int>(axis)] = 1;
  }
  stage.outputs.push_back({DType::f32, reduced, random.layout(reduced)});
  TestTensor x(stage.inputs[0]);
  const bool product = params.kind == ReduceKind::product;
  const double offset = params.kind == ReduceKind::log_sum ? 3 : 0.2;
  x.fill([&] { return product ? 1 + 0.02 * random.normal() : random.normal() + offset; });
  const TensorView x_view = x.view();
  TestTensor want(stage.outputs[0]);
  const TensorView want_view = want.view();
  reduce_info().reference(params, {&x_view, 1}, {&want_view, 1});
  // Errors of rounding add up like a random walk; five times its length leaves room.
  const double bound = 5 * 6e-8 * (4 + std::sqrt(count)) * (product ? std::sqrt(count) + 1 : 1);
  const double scale = params.kind == ReduceKind::sum ? 3 : 1;
  for (const std::string& unit : test_units()) {
    for (int threads : {1, 2}) {
      auto kernel = make_reduce(stage, LoopSchedule{"strips", unit, 0}, Device{}, 0);
      ASSERT_TRUE(kernel.ok()) << kernel.error().message;
      ThreadPool pool(threads);
      TestTensor got(stage.outputs[0]);
      std::byte *const in = x.origin(), *const out = got.origin();
      std::vector<double> workspace(static_cast<size_t>((*kernel)->workspace_bytes() + 7) / 8 + 1, 77.0);
      (*kernel)->run({{&in, 1}, {&out, 1}, reinterpret_cast<std::byte*>(workspace.data()), &pool});
      ASSERT_EQ(workspace.back(), 77.0) << note << " wrote past its workspace";
      ASSERT_TRUE(got.sentinels_hold()) << note << " on " << unit;
      for_each_index(reduced, [&](const Dims& at) {
        const double w = want.at(at);
        const double mean_like = params.kind == ReduceKind::mean ? 1 : std::abs(w) + scale;
        ASSERT_TRUE(close(got.at(at), w, bound * mean_like))
            << note << " " << name_of(params.kind) << " on " << unit << " threads " << threads << " axes "
            << params.axes.to_string() << " of " << shape.to_string() << " " << name_of(shape, layout) << " at "
            << at.to_string() << " got " << got.at(at) << " want " << w;
      });
    }
  }
}

TEST(Reduce, RandomReductionsMatchTheReference) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    TestRandom random(seed);
    const int rank = static_cast<int>(random.between(1, 5));
    const Dims shape = random.shape(rank, rank <= 2 ? 200 : rank == 3 ? 30 : 11);
    ReduceParams params;
    params.kind = static_cast<ReduceKind>(random.between(0, static_cast<int>(ReduceKind::log_sum_exp)));
    for (int i = 0; i < rank; ++i)
      if (random.chance(50)) params.axes.push_back(i);
    check(shape, random.layout(shape, random.chance(20) ? 30 : 0), params, random, "seed " + std::to_string(seed));
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(Reduce, LargeShapesAreSplitAndStayAccurate) {
  TestRandom random(5);
  const ReduceKind kinds[] = {ReduceKind::sum, ReduceKind::mean, ReduceKind::max, ReduceKind::log_sum_exp, ReduceKind::l2};
  for (ReduceKind kind : kinds) {
    const Dims image{1, 70, 61, 43};
    check(image, channels_last(image), {kind, {2, 3}}, random, "channels last pooling");
    check(image, row_major(image), {kind, {2, 3}}, random, "row-major pooling");
    check(image, channels_last(image), {kind, {1}}, random, "channels");
    check(image, row_major(image), {kind, {0, 1, 2, 3}}, random, "everything");
    const Dims colours{1, 3, 211, 120};
    check(colours, channels_last(colours), {kind, {2, 3}}, random, "three channels");
    const Dims wide{40, 2100};
    check(wide, row_major(wide), {kind, {0}}, random, "wide rows into one");
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(Reduce, NanAndInfinityPassThrough) {
  for (const ReduceKind kind : {ReduceKind::max, ReduceKind::min, ReduceKind::sum, ReduceKind::log_sum_exp}) {
    for (const double special : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                                 -std::numeric_limits<double>::infinity()}) {
      for (const Dims& axes : {Dims{0}, Dims{1}}) {
        Stage stage;
        const Dims shape{37, 41}, reduced = axes[0] == 0 ? Dims{1, 41} : Dims{37, 1};
        stage.params = ReduceParams{kind, axes};
        stage.inputs.push_back({DType::f32, shape, row_major(shape)});
        stage.outputs.push_back({DType::f32, reduced, row_major(reduced)});
        TestTensor x(stage.inputs[0]), want(stage.outputs[0]);
        int i = 0;
        x.fill([&] { return ++i % 97 == 5 ? special : i * 0.01; });
        const TensorView x_view = x.view(), want_view = want.view();
        reduce_info().reference(stage.params, {&x_view, 1}, {&want_view, 1});
        for (const std::string& unit : test_units()) {
          TestTensor got(stage.outputs[0]);
          auto kernel = make_reduce(stage, LoopSchedule{"strips", unit, 0}, Device{}, 0);
          ASSERT_TRUE(kernel.ok());
          std::byte *const in = x.origin(), *const out = got.origin();
          std::vector<double> workspace(static_cast<size_t>((*kernel)->workspace_bytes() + 7) / 8);
          InlineExecutor executor;
          (*kernel)->run({{&in, 1}, {&out, 1}, reinterpret_cast<std::byte*>(workspace.data()), &executor});
          for_each_index(reduced, [&](const Dims& at) {
            EXPECT_TRUE(close(got.at(at), want.at(at), 1e-4)) << name_of(kind) << " of " << special << " axis " << axes[0]
                                                              << " got " << got.at(at) << " want " << want.at(at);
          });
        }
      }
    }
  }
}

}  // namespace
}  // namespace sparkle::cpu
