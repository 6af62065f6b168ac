// Normalisation against the reference: random axes, shapes, layouts, operands, units and thread counts.
#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/test_tensor.h"
#include "families/family.h"
#include "families/normalize/normalize.h"

namespace sparkle::cpu {
namespace {

// Scale and bias have one value per index of `axes_of_scale`.
void check(const Dims& shape, const Layout& from, const Layout& to, const NormalizeParams& params, const Dims& axes_of_scale,
           double mean, TestRandom& random, const std::string& note) {
  Stage stage;
  stage.params = params;
  stage.inputs.push_back({DType::f32, shape, from});
  stage.outputs.push_back({DType::f32, shape, to});
  std::vector<TestTensor> inputs;
  inputs.emplace_back(stage.inputs[0]);
  inputs[0].fill([&] { return random.normal() + mean; });
  for (int i = 0; i < params.scale + params.bias; ++i) {
    TensorDesc desc{DType::f32, shape, row_major(shape)};
    Dims only = Dims::filled(shape.size(), 1);
    for (int64_t axis : axes_of_scale) only[static_cast<int>(axis)] = shape[static_cast<int>(axis)];
    desc.layout = row_major(only);
    for (int axis = 0; axis < shape.size(); ++axis)
      if (only[axis] == 1) desc.layout.strides[axis] = 0;
    stage.inputs.push_back(desc);
    inputs.emplace_back(desc);
    inputs.back().fill([&] { return 1 + 0.3 * random.normal(); });
  }
  std::vector<TensorView> views;
  std::vector<std::byte*> pointers;
  for (TestTensor& input : inputs) views.push_back(input.view()), pointers.push_back(input.origin());
  TestTensor want(stage.outputs[0]);
  const TensorView want_view = want.view();
  normalize_info().reference(params, views, {&want_view, 1});
  for (const std::string& unit : test_units()) {
    for (int threads : {1, 2}) {
      auto kernel = make_normalize(stage, LoopSchedule{"rows", unit, 0}, Device{}, 0);
      ASSERT_TRUE(kernel.ok()) << kernel.error().message;
      ThreadPool pool(threads);
      TestTensor got(stage.outputs[0]);
      std::byte* const out = got.origin();
      std::vector<double> workspace(static_cast<size_t>((*kernel)->workspace_bytes()) / 8 + 1, 77.0);
      (*kernel)->run({pointers, {&out, 1}, reinterpret_cast<std::byte*>(workspace.data()), &pool});
      ASSERT_EQ(workspace.back(), 77.0) << note << " wrote past its workspace";
      ASSERT_TRUE(got.sentinels_hold()) << note << " on " << unit;
      for_each_index(shape, [&](const Dims& at) {
        const double w = want.at(at);
        // x - mean is rounded in units of the mean; a group of few equal values divides that by a small deviation.
        const double bound = 1e-5 + 2e-5 * std::abs(w) + 2e-6 * std::abs(mean);
        ASSERT_TRUE(close(got.at(at), w, bound))
            << note << " on " << unit << " threads " << threads << " shape " << shape.to_string() << " " << name_of(shape, from)
            << " axes " << params.axes.to_string() << " at " << at.to_string() << " got " << got.at(at) << " want " << w;
      });
    }
  }
}

TEST(Normalize, RandomGroupsMatchTheReference) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    TestRandom random(seed);
    const int rank = static_cast<int>(random.between(2, 5));
    const Dims shape = random.shape(rank, rank == 2 ? 120 : rank == 3 ? 24 : 9);
    NormalizeParams params;
    params.epsilon = 1e-2;  // groups of one value divide by its root
    params.center = random.chance(75);
    if (!params.center && random.chance(50)) params.divisor = random.chance(50) ? NormalizeDivisor::l1 : NormalizeDivisor::l2;
    if (params.center && random.chance(20)) params.divisor = NormalizeDivisor::deviation, params.epsilon = 0.1;
    params.scale = random.chance(70), params.bias = random.chance(70);
    Dims per_scale;
    for (int i = 0; i < rank; ++i) {
      if (random.chance(50)) params.axes.push_back(i);
      if (random.chance(40)) per_scale.push_back(i);
    }
    const Layout from = random.layout(shape);
    check(shape, from, random.chance(60) ? from : random.layout(shape), params, per_scale, 0.5, random,
          "seed " + std::to_string(seed));
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(Normalize, TypicalFormsMatchTheReference) {
  TestRandom random(3);
  const Dims image{2, 48, 41, 50}, tokens{3, 197, 192}, grouped{2, 8, 6, 400};
  NormalizeParams instance;
  instance.axes = {2, 3};
  check(image, channels_last(image), channels_last(image), instance, {1}, 1, random, "instance, channels last");
  check(image, row_major(image), row_major(image), instance, {1}, 1, random, "instance, row-major");
  // A mean far from zero: the sum of squares alone would lose all digits of the variance.
  check(image, channels_last(image), channels_last(image), instance, {1}, 1000, random, "instance with a large mean");
  // Rows of several blocks, and of groups of planes.
  const Dims large{2, 3, 101, 97}, planes{1, 2, 3, 67 * 43};
  check(large, row_major(large), row_major(large), instance, {1}, 1, random, "large instances");
  check(large, row_major(large), row_major(large), instance, {1}, 1000, random, "large instances with a large mean");
  check(planes, row_major(planes), row_major(planes), instance, {1, 2}, -3, random, "groups of planes");
  NormalizeParams layer;
  layer.axes = {2};
  check(tokens, row_major(tokens), row_major(tokens), layer, {2}, 1, random, "layer");
  layer.center = false, layer.bias = false;
  check(tokens, row_major(tokens), row_major(tokens), layer, {2}, 1, random, "root mean square");
  NormalizeParams group;
  group.axes = {2, 3};
  check(grouped, row_major(grouped), row_major(grouped), group, {1, 2}, 1, random, "group");
}

}  // namespace
}  // namespace sparkle::cpu
