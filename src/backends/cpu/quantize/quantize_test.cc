// QuantizeLinear and DequantizeLinear with scales and zero points along any axis, on every unit of this machine against the
// reference, bit for bit.
#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/test_tensor.h"
#include "families/family.h"
#include "families/quantize/quantize.h"

namespace sparkle::cpu {
namespace {

Device machine_with(const std::string& unit) {
  Device device;
  device.units.emplace_back();
  device.units.back().name = unit;
  return device;
}

// Lines as they lie in a concatenation: with something between them.
void part_of_a_wider(TestRandom& random, TensorDesc& desc) {
  Dims around = desc.shape;
  for (int i = 0; i < around.size(); ++i)
    if (desc.layout.strides[i] == 1 && around[i] >= 2) {
      around[i] += random.between(1, 9);
      const bool rows = desc.layout.strides == row_major(desc.shape).strides;
      desc.layout = rows ? row_major(around) : channels_last(around);
      return;
    }
}

// The stage of random operands, scale and zero point along `axis` (-1: one for all).
Stage random_stage(TestRandom& random, bool quantize, int& axis) {
  const Dims shape = random.shape(static_cast<int>(random.between(1, 4)), 20);
  axis = static_cast<int>(random.between(-1, shape.size() - 1));
  const DType byte = random.chance(50) ? DType::u8 : DType::i8;
  TensorDesc wide{DType::f32, shape, row_major(shape)};
  if (random.chance(60)) wide.layout = channels_last(shape);
  TensorDesc narrow = wide;
  narrow.dtype = byte;
  if (axis < 0 && random.chance(60)) part_of_a_wider(random, random.chance(50) ? wide : narrow);
  const auto list = [&](DType type, bool split) {
    TensorDesc desc{type, shape, row_major(shape)};
    for (int i = 0; i < shape.size(); ++i) desc.layout.strides[i] = split && i == axis ? 1 : 0;
    return desc;
  };
  QuantizeParams p;
  p.kind = quantize ? QuantizeKind::quantize : QuantizeKind::dequantize;
  if (quantize && random.chance(30)) p.clip = true, p.low = random.between(-100, 50), p.high = p.low + random.between(0, 90);
  // A zero point may serve all channels of scales that differ.
  return {p, {quantize ? wide : narrow, list(DType::f32, true), list(byte, random.chance(70))}, {quantize ? narrow : wide}};
}

TEST(Quantize, ScalesAlongAnyAxis) {
  for (const std::string& unit : test_units())
    for (uint64_t seed = 1; seed <= static_cast<uint64_t>(cases_on(unit, 400)); ++seed) {
      TestRandom random(seed);
      int axis = -1;
      const Stage stage = random_stage(random, seed % 2 != 0, axis);
      SCOPED_TRACE(unit + ", seed " + std::to_string(seed) + ": " + stage.outputs[0].shape.to_string() + " axis " +
                   std::to_string(axis));
      std::vector<TestTensor> tensors;
      for (const TensorDesc& desc : stage.inputs) tensors.emplace_back(desc);
      const bool is_signed = stage.inputs[2].dtype == DType::i8;
      const auto byte = [&] { return static_cast<double>(random.between(is_signed ? -128 : 0, is_signed ? 127 : 255)); };
      const bool from_bytes = stage.inputs[0].dtype != DType::f32;
      tensors[0].fill([&] {
        if (from_bytes) return byte();
        return random.chance(2) ? static_cast<double>(NAN) : 9 * random.normal();
      });
      tensors[1].fill([&] { return static_cast<double>(random.between(1, 200)) / 1000; });
      tensors[2].fill(byte);
      TestTensor got(stage.outputs[0]), want(stage.outputs[0]);
      std::vector<TensorView> views;
      std::vector<std::byte*> inputs;
      for (TestTensor& t : tensors) views.push_back(t.view()), inputs.push_back(t.origin());
      const TensorView expected = want.view();
      quantize_info().reference(stage.params, views, {&expected, 1});
      auto kernel = make_quantize(stage, LoopSchedule{"vectors", unit, 0}, machine_with(unit), 0);
      ASSERT_TRUE(kernel.ok()) << kernel.error().message;
      std::vector<float> workspace(static_cast<size_t>((*kernel)->workspace_bytes()) / 4 + 1, NAN);
      ThreadPool pool(2);
      std::byte* out = got.origin();
      (*kernel)->run({inputs, {&out, 1}, reinterpret_cast<std::byte*>(workspace.data()), &pool});
      EXPECT_TRUE(got.sentinels_hold());
      for_each_index(stage.outputs[0].shape, [&](const Dims& at) { ASSERT_EQ(got.at(at), want.at(at)) << at.to_string(); });
    }
}

// Lines and runs that several threads share.
TEST(Quantize, LargeTensorsInManyTasks) {
  const Dims shape{2, 37, 60, 61};
  for (const std::string& unit : test_units())
    for (const bool last : {false, true}) {
      TensorDesc x{DType::f32, shape, last ? channels_last(shape) : row_major(shape)}, y = x;
      y.dtype = DType::u8;
      TensorDesc scale{DType::f32, shape, row_major(shape)}, zero{DType::u8, shape, row_major(shape)};
      for (int i = 0; i < 4; ++i) scale.layout.strides[i] = zero.layout.strides[i] = i == 1;
      QuantizeParams p;
      p.kind = QuantizeKind::quantize;
      const Stage stage{p, {x, scale, zero}, {y}};
      auto kernel = make_quantize(stage, LoopSchedule{"vectors", unit, 0}, machine_with(unit), 0);
      ASSERT_TRUE(kernel.ok()) << kernel.error().message;
      std::vector<float> values(static_cast<size_t>(x.elements())), scales(37), workspace(37 * 4);
      std::vector<uint8_t> zeros(37), got(values.size());
      for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1009) * 0.01f - 5;
      for (size_t c = 0; c < 37; ++c)
        scales[c] = 0.01f + 0.003f * static_cast<float>(c), zeros[c] = static_cast<uint8_t>(3 * c);
      std::byte* inputs[] = {reinterpret_cast<std::byte*>(values.data()), reinterpret_cast<std::byte*>(scales.data()),
                             reinterpret_cast<std::byte*>(zeros.data())};
      std::byte* out = reinterpret_cast<std::byte*>(got.data());
      ThreadPool pool(2);
      (*kernel)->run({inputs, {&out, 1}, reinterpret_cast<std::byte*>(workspace.data()), &pool});
      for (size_t i = 0; i < got.size(); ++i) {
        const size_t c = last ? i % 37 : i / (60 * 61) % 37;
        ASSERT_EQ(got[i], quantized(values[i], scales[c], zeros[c], {0, 255})) << i << (last ? " channels last" : "");
      }
    }
}

}  // namespace
}  // namespace sparkle::cpu
