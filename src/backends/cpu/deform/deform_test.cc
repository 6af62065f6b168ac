// Deformable convolution against the reference: groups, offset groups, mask, strides, dilation, weights packed and not.
#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/test_tensor.h"
#include "families/deform/deform.h"
#include "families/family.h"

namespace sparkle::cpu {
namespace {

TEST(Deform, RandomConvolutionsMatchTheReference) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    TestRandom random(seed);
    DeformParams p;
    p.groups = random.between(1, 3), p.offset_groups = random.between(1, 3);
    const int64_t unit_channels = p.groups * p.offset_groups;
    const int64_t channels = unit_channels * random.between(1, random.chance(20) ? 20 : 4);
    const int64_t filters = p.groups * random.between(1, random.chance(20) ? 80 : 9);
    Dims x{random.between(1, 2), channels}, y{x[0], filters};
    for (size_t i = 0; i < 2; ++i) {
      p.filter[i] = random.between(1, 3), p.stride[i] = random.between(1, 2), p.dilation[i] = random.between(1, 2);
      p.pad_begin[i] = random.between(0, 2);
      const int64_t reach = (p.filter[i] - 1) * p.dilation[i] + 1, out = random.between(1, 8);
      x.push_back(std::max<int64_t>(1, (out - 1) * p.stride[i] + reach - p.pad_begin[i]));
      y.push_back(out);
    }
    p.bias = random.chance(50), p.mask = random.chance(50);
    const int64_t taps = p.filter[0] * p.filter[1] * p.offset_groups;
    const Dims w{filters, channels / p.groups, p.filter[0], p.filter[1]};
    const Dims offset{x[0], 2 * taps, y[2], y[3]}, mask{x[0], taps, y[2], y[3]};
    Stage stage;
    stage.params = p;
    stage.inputs = {{DType::f32, x, channels_last(x)}, dense_desc(DType::f32, w), {DType::f32, offset, random.layout(offset)}};
    if (p.bias) stage.inputs.push_back(dense_desc(DType::f32, {filters}));
    if (p.mask) stage.inputs.push_back({DType::f32, mask, random.layout(mask)});
    stage.outputs = {{DType::f32, y, channels_last(y)}};
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
    deform_info().reference(p, views, {&want_view, 1});
    const auto depth = static_cast<double>(channels / p.groups * p.filter[0] * p.filter[1]);
    for (const std::string& unit : test_units()) {
      for (const bool constant : {false, true}) {
        auto kernel = make_deform(stage, LoopSchedule{"columns", unit, 0}, Device{}, constant ? 2 : 0);
        ASSERT_TRUE(kernel.ok()) << kernel.error().message;
        ThreadPool pool(constant ? 1 : 2);
        TestTensor got(stage.outputs[0]);
        std::byte* const out = got.origin();
        std::vector<float> packed(static_cast<size_t>((*kernel)->packed_bytes(1)) / 4 + 1, 77.0f);
        std::vector<std::byte*> operands = pointers;
        if (constant) {
          (*kernel)->pack(1, pointers[1], reinterpret_cast<std::byte*>(packed.data()), pool);
          operands[1] = reinterpret_cast<std::byte*>(packed.data());
          ASSERT_EQ(packed.back(), 77.0f);
        }
        std::vector<double> workspace(static_cast<size_t>((*kernel)->workspace_bytes()) / 8 + 1,
                                      std::numeric_limits<double>::quiet_NaN());
        workspace.back() = 77.0;
        (*kernel)->run({operands, {&out, 1}, reinterpret_cast<std::byte*>(workspace.data()), &pool});
        ASSERT_EQ(workspace.back(), 77.0) << "seed " << seed << " wrote past its workspace";
        ASSERT_TRUE(got.sentinels_hold()) << "seed " << seed << " on " << unit;
        for_each_index(y, [&](const Dims& at) {
          ASSERT_TRUE(close(got.at(at), want.at(at), 6e-8 * (depth + 8) * 4 * std::sqrt(depth)))
              << "seed " << seed << " on " << unit << " constant " << constant << " at " << at.to_string() << " got "
              << got.at(at) << " want " << want.at(at) << " " << to_text(p);
        });
      }
    }
  }
}

}  // namespace
}  // namespace sparkle::cpu
