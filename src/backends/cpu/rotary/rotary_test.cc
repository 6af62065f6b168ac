// Rotary embedding against the reference: random sizes, both pairings, rows that turn in part.
#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/test_tensor.h"
#include "families/family.h"
#include "families/rotary/rotary.h"

namespace sparkle::cpu {
namespace {

TEST(Rotary, RandomRowsMatchTheReference) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    TestRandom random(seed);
    const int64_t half = random.between(1, 40), width = 2 * half + (random.chance(40) ? random.between(1, 9) : 0);
    const Dims rows{random.between(1, 3), random.between(1, 4), random.between(1, 9)};
    const auto shape = [&](int64_t columns) { return Dims{rows[0], rows[1], rows[2], columns}; };
    Stage stage;
    stage.params = RotaryParams{random.chance(50)};
    TensorDesc table{DType::f32, shape(half), row_major({rows[0], rows[2], half})};
    table.layout.strides = {rows[2] * half, 0, half, 1};  // heads share their angles
    table.layout.order = {0, 1, 2, 3};
    TensorDesc x{DType::f32, shape(width), dense(shape(width), {0, 2, 1, 3})};
    stage.inputs = {x, table, table};
    stage.outputs = {{DType::f32, shape(width), random.chance(50) ? x.layout : row_major(shape(width))}};
    std::vector<TestTensor> inputs;
    std::vector<TensorView> views;
    std::vector<std::byte*> pointers;
    for (const TensorDesc& desc : stage.inputs) {
      inputs.emplace_back(desc);
      inputs.back().fill([&] { return random.normal(); });
    }
    for (TestTensor& input : inputs) views.push_back(input.view()), pointers.push_back(input.origin());
    TestTensor want(stage.outputs[0]);
    const TensorView want_view = want.view();
    rotary_info().reference(stage.params, views, {&want_view, 1});
    for (const std::string& unit : test_units()) {
      for (int threads : {1, 2}) {
        auto kernel = make_rotary(stage, LoopSchedule{"rows", unit, 0}, Device{}, 0);
        ASSERT_TRUE(kernel.ok()) << kernel.error().message;
        ThreadPool pool(threads);
        TestTensor got(stage.outputs[0]);
        std::byte* const out = got.origin();
        (*kernel)->run({pointers, {&out, 1}, nullptr, &pool});
        ASSERT_TRUE(got.sentinels_hold()) << "seed " << seed << " on " << unit;
        for_each_index(stage.outputs[0].shape, [&](const Dims& at) {
          ASSERT_TRUE(close(got.at(at), want.at(at), 3e-7 * (std::abs(want.at(at)) + 8)))
              << "seed " << seed << " on " << unit << " at " << at.to_string();
        });
      }
    }
  }
}

}  // namespace
}  // namespace sparkle::cpu
