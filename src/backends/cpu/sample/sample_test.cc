// Sampling by a grid against the reference: random sizes, one to three dimensions, all modes, paddings and alignments.
#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/test_tensor.h"
#include "families/family.h"
#include "families/sample/sample.h"

namespace sparkle::cpu {
namespace {

TEST(Sample, RandomGridsMatchTheReference) {
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    TestRandom random(seed);
    const int spatial = static_cast<int>(random.between(1, 3));
    SampleParams params;
    params.mode = static_cast<SampleMode>(random.between(0, 2));
    params.padding = static_cast<SamplePadding>(random.between(0, 2));
    params.align_corners = random.chance(50);
    Dims x{random.between(1, 2), random.between(1, 35)}, grid{x[0]}, y = x;
    for (int i = 0; i < spatial; ++i) x.push_back(random.chance(20) ? 1 : random.between(1, 9));
    for (int i = 0; i < spatial; ++i) grid.push_back(random.between(1, 6)), y.push_back(grid.back());
    grid.push_back(spatial);
    Stage stage;
    stage.params = params;
    stage.inputs = {{DType::f32, x, channels_last(x)}, {DType::f32, grid, random.layout(grid)}};
    stage.outputs = {{DType::f32, y, channels_last(y)}};
    std::vector<TestTensor> inputs;
    for (const TensorDesc& desc : stage.inputs) inputs.emplace_back(desc);
    inputs[0].fill([&] { return random.normal(); });
    const double far = std::numeric_limits<double>::infinity();
    inputs[1].fill([&] { return random.chance(2) ? (random.chance(50) ? far : -1e30) : 1.2 * random.normal(); });
    std::vector<TensorView> views;
    std::vector<std::byte*> pointers;
    for (TestTensor& input : inputs) views.push_back(input.view()), pointers.push_back(input.origin());
    TestTensor want(stage.outputs[0]);
    const TensorView want_view = want.view();
    sample_info().reference(params, views, {&want_view, 1});
    for (const std::string& unit : test_units()) {
      for (int threads : {1, 2}) {
        auto kernel = make_sample(stage, LoopSchedule{"channels", unit, 0}, Device{}, 0);
        ASSERT_TRUE(kernel.ok()) << kernel.error().message;
        ThreadPool pool(threads);
        TestTensor got(stage.outputs[0]);
        std::byte* const out = got.origin();
        (*kernel)->run({pointers, {&out, 1}, nullptr, &pool});
        ASSERT_TRUE(got.sentinels_hold()) << "seed " << seed << " on " << unit;
        for_each_index(y, [&](const Dims& at) {
          // Up to 64 products whose weights together are below 4 in each dimension.
          ASSERT_TRUE(close(got.at(at), want.at(at), 6e-8 * 64 * 8))
              << "seed " << seed << " on " << unit << " at " << at.to_string() << " got " << got.at(at) << " want "
              << want.at(at) << " " << to_text(params);
        });
      }
    }
  }
}

}  // namespace
}  // namespace sparkle::cpu
