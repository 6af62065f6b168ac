// The quantize kernels for Vulkan against the family's reference, bit for bit: all kinds, random layouts, and quotients that
// lie half way between two integers or next to it.
#include "backends/vulkan/vulkan_testing.h"
#include "families/integers/integers.h"
#include "families/quantize/quantize.h"
#include "families/registry.h"

namespace sparkle::vulkan {
namespace {

using cpu::TestRandom;

class Case {
 public:
  Case(uint64_t seed, QuantizeKind kind, DType real) : random_(seed), real_(real) {
    params_.kind = kind;
    const Dims shape = shape_of_some();
    const bool split = random_.chance(60);
    const int axis = static_cast<int>(random_.between(0, shape.size() - 1));
    switch (kind) {
      case QuantizeKind::quantize:
      case QuantizeKind::dequantize: linear(shape, axis, split); break;
      case QuantizeKind::dynamic:
        input(DType::f32, shape, random_.layout(shape));
        inputs.back().fill([&] { return random_.chance(2) ? NAN : 30 * random_.normal() + 10; });
        output(DType::u8, shape, random_.layout(shape));
        output(DType::f32, {}, {});
        output(DType::u8, {}, {});
        break;
      case QuantizeKind::add: {
        clip();
        const DType a = byte(), b = byte(), y = byte();
        const Layout layout = random_.layout(shape);
        integers(a, shape, random_.chance(70) ? layout : random_.layout(shape));
        scale(false, shape, axis), integers(a, {}, {});
        integers(b, shape, random_.chance(70) ? layout : random_.layout(shape));
        scale(false, shape, axis), integers(b, {}, {});
        scale(false, shape, axis), integers(y, {}, {});
        output(y, shape, layout);
        break;
      }
      case QuantizeKind::average: {
        clip();
        const DType x = byte(), y = byte();
        Dims small = shape;
        while (small.size() < 3) small.push_back(random_.between(1, 9));
        Dims out = small;
        for (int i = 2; i < out.size(); ++i) out[i] = 1;
        integers(x, small, random_.layout(small));
        scale(false, small, 0), integers(x, {}, {}), scale(false, small, 0), integers(y, {}, {});
        output(y, out, random_.layout(out));
        break;
      }
      case QuantizeKind::factor:
        for (int i = 0; i < 3; ++i) {
          input(real_, shape, random_.layout(shape, 30));
          inputs.back().fill([&] { return std::exp(random_.normal() * (random_.chance(10) ? 40 : 3)); });
        }
        output(random_.chance(30) ? DType::f32 : real_, shape, random_.layout(shape));
    }
    stage.params = params_;
  }

  Stage stage;
  std::vector<TestOperand> inputs, outputs;

 private:
  Dims shape_of_some() {
    Dims shape = random_.shape(static_cast<int>(random_.between(1, 5)), 12);
    if (random_.chance(50)) shape[shape.size() - 1] = 4 * random_.between(1, 9);
    return shape;
  }
  DType byte() { return random_.chance(50) ? DType::u8 : DType::i8; }
  void input(DType type, const Dims& shape, const Layout& layout) {
    stage.inputs.push_back({type, shape, layout});
    inputs.emplace_back(stage.inputs.back());
  }
  void output(DType type, const Dims& shape, const Layout& layout) {
    stage.outputs.push_back({type, shape, layout});
    outputs.emplace_back(stage.outputs.back());
  }
  void integers(DType type, const Dims& shape, const Layout& layout) {
    input(type, shape, layout);
    if (is_narrow_float(type)) {
      const bool zeros = random_.chance(50);
      inputs.back().fill([&] { return zeros ? 0.0 : std::ldexp(random_.normal(), static_cast<int>(random_.between(-6, 8))); });
      return;
    }
    const IntegerRange range = range_of(type);
    const bool extreme = random_.chance(20);
    inputs.back().fill([&] {
      return static_cast<double>(extreme ? (random_.chance(50) ? range.low : range.high)
                                         : random_.between(range.low, range.high));
    });
  }
  void clip() {
    if (!random_.chance(30)) return;
    params_.clip = true, params_.low = random_.between(-100, 50), params_.high = params_.low + random_.between(0, 90);
  }
  Layout list(const Dims& shape, int axis, bool split) {
    Layout layout = row_major(shape);
    for (int i = 0; i < shape.size(); ++i) layout.strides[i] = split && i == axis ? 1 : 0;
    return layout;
  }
  double some_scale() {
    if (random_.chance(30)) return std::ldexp(1.0, static_cast<int>(random_.between(-6, 3)));
    if (random_.chance(3)) return random_.chance(50) ? 1e-40 : 0;
    return (random_.chance(5) ? -1 : 1) * static_cast<double>(random_.between(1, 2000)) / 1999;
  }
  void scale(bool split, const Dims& shape, int axis) {
    const Dims shaped = split || random_.chance(50) ? shape : Dims{};
    input(real_, shaped, list(shaped, axis, split));
    inputs.back().fill([&] { return some_scale(); });
  }

  void linear(const Dims& shape, int axis, bool split) {
    const bool quantize = params_.kind == QuantizeKind::quantize;
    const DType types[] = {DType::u8,     DType::i8,         DType::u8,     DType::i8, DType::u16,      DType::i16,
                           DType::u4,     DType::i4,         DType::u2,     DType::i2, DType::f8e4m3fn, DType::f8e4m3fnuz,
                           DType::f8e5m2, DType::f8e5m2fnuz, DType::f4e2m1, DType::i32};
    const DType narrow = types[random_.between(0, quantize ? 14 : 15)];
    if (quantize) clip();
    if (random_.chance(25)) {
      params_.axis = axis;
      params_.block = random_.between(1, shape[axis]);
    }
    const Layout layout = random_.layout(shape);
    const Layout other = random_.chance(60) ? layout : random_.layout(shape);
    Dims listed = shape;
    if (params_.block > 0) listed[axis] = (shape[axis] + params_.block - 1) / params_.block;
    if (quantize) {
      input(real_, shape, layout);
    } else if (narrow == DType::i32) {
      input(narrow, shape, layout);
      inputs.back().fill([&] { return static_cast<double>(random_.between(-2147483647 - 1, 2147483647)); });
    } else {
      integers(narrow, shape, layout);
    }
    const Layout parameters = params_.block > 0 ? row_major(listed) : list(shape, axis, split);
    input(real_, listed, parameters);
    inputs.back().fill([&] { return some_scale(); });
    integers(narrow, listed, params_.block > 0 || random_.chance(70) ? parameters : list(shape, axis, false));
    output(quantize ? narrow : real_, shape, other);
    if (quantize) fp16();
  }
  // Most quotients half way between two integers, some a few steps of the type beside.
  void fp16() {
    TestOperand &x = inputs[0], &scales = inputs[1];
    const bool sixteen = size_of(inputs[2].desc.dtype) == 2;
    for_each_index(x.desc.shape, [&](const Dims& at) {
      Dims from = at;
      if (params_.block > 0) from[params_.axis] /= params_.block;
      const auto n = static_cast<double>(random_.between(sixteen ? -70000 : -300, sixteen ? 70000 : 300));
      auto value = static_cast<float>((n + 0.5) * scales.at(from));
      const int64_t steps = random_.between(-2, 2);
      for (int64_t i = 0; i < std::abs(steps); ++i) value = std::nextafter(value, steps < 0 ? -INFINITY : INFINITY);
      if (random_.chance(30)) value = static_cast<float>(300 * random_.normal() * scales.at(from));
      if (random_.chance(2)) value = random_.chance(50) ? NAN : random_.chance(50) ? INFINITY : -INFINITY;
      store_element(real_, static_cast<double>(value), element_at(x.view(), at));
    });
  }

  TestRandom random_;
  DType real_;
  QuantizeParams params_;
};

void check(QuantizeKind kind, int cases, uint64_t seed, DType real = DType::f32) {
  SPARKLE_NEEDS_VULKAN(backend);
  const FamilyInfo& family = info(Family::quantize);
  const auto row =
      std::find_if(family.variants.begin(), family.variants.end(), [](const Variant& v) { return v.name == "elements"; });
  ASSERT_NE(row, family.variants.end());
  for (int i = 0; i < cases && !::testing::Test::HasFailure(); ++i) {
    Case c(seed + static_cast<uint64_t>(i), kind, real);
    Reason why = Reason::none;
    const auto schedules = family.schedules(c.stage, *row, backend->device(), why);
    ASSERT_EQ(schedules.size(), 1u) << code_of(why);
    // Floats too to the bit: no wider type for what is expected.
    std::vector<TestOperand> wanted;
    std::vector<TensorView> in, out;
    for (TestOperand& input : c.inputs) in.push_back(input.view());
    for (const TensorDesc& d : c.stage.outputs) wanted.emplace_back(d);
    for (TestOperand& w : wanted) out.push_back(w.view());
    family.reference(c.stage.params, in, out);
    const Status ran = run_stage(*backend, c.stage, schedules[0], c.inputs, c.outputs, 0);
    ASSERT_TRUE(ran.ok()) << ran.error().message;
    for (size_t o = 0; o < wanted.size(); ++o)
      expect_close(c.outputs[o], wanted[o], 0,
                   "seed " + std::to_string(seed + static_cast<uint64_t>(i)) + " output " + std::to_string(o) + " of " +
                       c.stage.outputs[o].shape.to_string() + " " + to_text(c.stage.params));
  }
}

TEST(VulkanQuantize, Quantize) { check(QuantizeKind::quantize, 150, 1); }
TEST(VulkanQuantize, Dequantize) { check(QuantizeKind::dequantize, 80, 1001); }
TEST(VulkanQuantize, Dynamic) { check(QuantizeKind::dynamic, 30, 2001); }
TEST(VulkanQuantize, Add) { check(QuantizeKind::add, 80, 3001); }
TEST(VulkanQuantize, Average) { check(QuantizeKind::average, 40, 4001); }
TEST(VulkanQuantize, Factor) { check(QuantizeKind::factor, 40, 5001); }
TEST(VulkanQuantize, Fp16ToTheBit) {
  SPARKLE_NEEDS_FP16();
  check(QuantizeKind::quantize, 100, 6001, DType::f16);
  check(QuantizeKind::dequantize, 60, 7001, DType::f16);
  check(QuantizeKind::factor, 40, 8001, DType::f16);
}

}  // namespace
}  // namespace sparkle::vulkan
