#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "families/gemm/gemm_family.h"
#include "families/gemm/gemm_shape.h"
#include "families/registry.h"

namespace sparkle {
namespace {

Device server() {
  Device device;
  device.cores = 4;
  MathUnit wide, narrow;
  wide.name = "avx512", wide.n = 16, wide.registers = 32, wide.flops_per_second = 100e9;
  narrow.name = "avx2", narrow.n = 8, narrow.registers = 16, narrow.flops_per_second = 50e9;
  device.units = {wide, narrow};
  const auto level = [](const char* name, int64_t bytes) {
    MemoryLevel l;
    l.name = name;
    l.bytes = bytes;
    return l;
  };
  device.memory = {level("L1", 32 << 10), level("L2", 1 << 20), level("L3", 32 << 20), level("DRAM", int64_t{1} << 36)};
  return device;
}

Stage convolution(int64_t n, int64_t c, int64_t size, int64_t k, int64_t filter, int64_t groups = 1) {
  GemmParams p;
  p.groups = groups;
  p.window.filter = {1, filter, filter};
  p.window.pad_begin = p.window.pad_end = {0, filter / 2, filter / 2};
  p.epilogue.bias = true;
  TensorDesc x = dense_desc(DType::f32, {n, c, size, size}), y = dense_desc(DType::f32, {n, k, size, size});
  x.layout = channels_last(x.shape), y.layout = channels_last(y.shape);
  return {p, {x, dense_desc(DType::f32, {k, c / groups, filter, filter}), dense_desc(DType::f32, {k})}, {y}};
}

const Variant& variant(std::string_view name) {
  for (const Variant& v : gemm_info().variants)
    if (v.name == name) return v;
  ADD_FAILURE() << "no variant " << name;
  return gemm_info().variants[0];
}

std::vector<GemmSchedule> schedules(const Stage& stage, const Device& device, std::string_view name = "tile6x4") {
  Reason why = Reason::none;
  std::vector<GemmSchedule> list;
  for (const Schedule& s : gemm_info().schedules(stage, variant(name), device, why)) list.push_back(get<GemmSchedule>(s));
  return list;
}

std::vector<float> run(const StageParams& params, const std::vector<HostTensor>& inputs, const Dims& output) {
  std::vector<TensorView> views;
  for (const HostTensor& t : inputs) views.push_back(t.view());
  const HostTensor y = HostTensor::zeros(DType::f32, output);
  const TensorView out = y.view();
  gemm_reference(params, views, {&out, 1});
  return {y.data<float>(), y.data<float>() + y.elements()};
}

TEST(GemmFamily, taps_inside_the_input) {
  using List = std::vector<TapRange>;
  // 3 taps, padding 1, 5 inputs: the first output loses a tap at the left, the last one at the right.
  EXPECT_EQ(tap_ranges({5, 5, 3, 1, 1, 1}), (List{{0, 1, {1, 3}}, {1, 4, {0, 3}}, {4, 5, {0, 2}}}));
  // A negative pad starts inside; outputs beyond the input see nothing.
  const auto beyond = tap_ranges({4, 4, 1, 1, 1, -2});
  ASSERT_EQ(beyond.size(), 2u);
  EXPECT_EQ(beyond[1].taps.size(), 0);
  // Stride 2 and dilation 2.
  for (const TapRange& s : tap_ranges({9, 5, 3, 2, 2, 2}))
    for (int64_t o = s.begin; o < s.end; ++o)
      for (int64_t t = 0; t < 3; ++t) {
        const int64_t at = o * 2 - 2 + t * 2;
        EXPECT_EQ(at >= 0 && at < 9, t >= s.taps.begin && t < s.taps.end) << o << " " << t;
      }
}

TEST(GemmFamily, reference_of_a_small_convolution) {
  GemmParams p;
  p.window.filter = {1, 1, 3};
  p.window.pad_begin = {0, 0, 1};
  p.epilogue.bias = true;
  p.epilogue.activation = Activation::relu;
  const auto y = run(p,
                     {HostTensor::of<float>(DType::f32, {1, 1, 4}, {1, 2, 3, 4}),
                      HostTensor::of<float>(DType::f32, {2, 1, 3}, {1, 10, 100, -1, 0, 1}),
                      HostTensor::of<float>(DType::f32, {2}, {1000, -2})},
                     {1, 2, 4});
  EXPECT_EQ(y, (std::vector<float>{1210, 1321, 1432, 1043, 0, 0, 0, 0}));
}

TEST(GemmFamily, reference_of_groups_and_residual_order) {
  GemmParams p;
  p.groups = 2;
  p.epilogue.alpha = 2;
  p.epilogue.scale = true;
  p.epilogue.residuals_before = p.epilogue.residuals_after = 1;
  p.epilogue.activation = Activation::relu;
  const auto y =
      run(p,
          {HostTensor::of<float>(DType::f32, {1, 2, 1}, {3, 5}), HostTensor::of<float>(DType::f32, {2, 1, 1}, {1, 1}),
           HostTensor::of<float>(DType::f32, {2}, {1, -1}), HostTensor::of<float>(DType::f32, {1, 2, 1}, {1, 2}),
           HostTensor::of<float>(DType::f32, {1, 2, 1}, {100, 200})},
          {1, 2, 1});
  EXPECT_EQ(y, (std::vector<float>{107, 200}));  // relu(2*3*1+1)+100, relu(-10+2)+200
}

TEST(GemmFamily, reference_of_a_broadcast_product) {
  GemmParams p;
  p.loader = Loader::dense;
  // Two matrices times one: [2,1,2] x [2,2].
  const auto y = run(
      p, {HostTensor::of<float>(DType::f32, {2, 1, 2}, {1, 2, 3, 4}), HostTensor::of<float>(DType::f32, {2, 2}, {1, 2, 3, 4})},
      {2, 1, 2});
  EXPECT_EQ(y, (std::vector<float>{7, 10, 15, 22}));
}

TEST(GemmFamily, order_follows_the_weights) {
  const Device device = server();
  // 16 KB of weights sweep from L2 for each block of pixels; 9 MB go panel by panel, in chunks.
  EXPECT_EQ(schedules(convolution(1, 64, 56, 64, 1), device).front().order, GemmOrder::rows);
  const GemmSchedule large = schedules(convolution(1, 512, 14, 512, 3), device).front();
  EXPECT_EQ(large.order, GemmOrder::columns);
  EXPECT_GT(large.kc, 0);
  EXPECT_LE(large.kc * 64 * 4, (1 << 20) / 4);
  // One row: weights stream past once.
  const GemmSchedule single = schedules(convolution(1, 2048, 1, 1000, 1), device).front();
  EXPECT_EQ(single.kc, 0);
  EXPECT_EQ(single.split, 1);
  // Unknown caches are survived.
  Device unknown = device;
  unknown.memory.clear();
  EXPECT_FALSE(schedules(convolution(1, 64, 56, 64, 3), unknown).empty());
}

TEST(GemmFamily, variants_are_rejected_with_a_reason) {
  Device device = server();
  Stage stage = convolution(1, 64, 56, 64, 1);
  const auto reason = [&](std::string_view name) {
    Reason why = Reason::none;
    return gemm_info().schedules(stage, variant(name), device, why).empty() ? why : Reason::none;
  };
  EXPECT_EQ(reason("tile6x4"), Reason::none);
  EXPECT_EQ(reason("tile6x2"), Reason::registers_idle);
  device.units.erase(device.units.begin());
  EXPECT_EQ(reason("tile6x4"), Reason::too_few_registers);
  EXPECT_EQ(reason("tile6x2"), Reason::none);
  stage.inputs[0].layout = row_major(stage.inputs[0].shape);
  EXPECT_EQ(reason("tile6x2"), Reason::layout_not_served);
  EXPECT_EQ(reason("plain"), Reason::none);
  device.units.clear();
  EXPECT_EQ(reason("tile6x2"), Reason::unit_missing);
  EXPECT_EQ(reason("plain"), Reason::none);
}

TEST(GemmFamily, footprint_counts_taps_and_lanes) {
  const Device device = server();
  const Stage stage = convolution(2, 64, 7, 24, 3);
  const Footprint f = gemm_footprint(stage, schedules(stage, device).front(), device);
  EXPECT_DOUBLE_EQ(f.nominal_flops, 2.0 * 2 * 49 * 9 * 64 * 24);
  // 19 of 21 taps along each dimension are inside; 24 filters take 32 lanes.
  EXPECT_DOUBLE_EQ(f.executed_flops, 2.0 * 2 * 19 * 19 * 64 * 32);
  ASSERT_EQ(f.bytes.size(), device.memory.size());
  for (size_t i = 1; i < f.bytes.size(); ++i) EXPECT_LE(f.bytes[i], f.bytes[i - 1]);
  EXPECT_GE(f.parallel_items, 1);
}

TEST(GemmFamily, wrong_order_asks_more_of_memory) {
  const Device device = server();
  const Stage stage = convolution(1, 512, 28, 512, 3);
  GemmSchedule columns = schedules(stage, device).front(), rows = columns;
  rows.order = GemmOrder::rows;
  rows.kc = rows.mc = 0;
  EXPECT_GT(gemm_footprint(stage, rows, device).bytes[2], 4 * gemm_footprint(stage, columns, device).bytes[2]);
}

TEST(GemmFamily, text_round_trip) {
  const Stage stage = convolution(1, 64, 7, 64, 3, 2);
  const auto& params = get<GemmParams>(stage.params);
  const auto parsed = from_text<GemmParams>(to_text(params));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(*parsed, params);
  const GemmSchedule schedule = schedules(stage, server()).front();
  const auto again = from_text<GemmSchedule>(to_text(schedule));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, schedule);
}

}  // namespace
// 10 bits of mantissa stay, ties go to the even neighbour, a carry reaches the exponent, and what is no number stays so.
TEST(GemmOperands, AreRoundedToNearestEven) {
  const double ulp = std::ldexp(1.0, -10);
  for (const OperandType type : {OperandType::f16, OperandType::tf32}) {
    EXPECT_EQ(rounded_to(type, 1 + ulp), 1 + ulp);
    EXPECT_EQ(rounded_to(type, 1 + ulp / 2), 1);
    EXPECT_EQ(rounded_to(type, 1 + 3 * ulp / 2), 1 + 2 * ulp);
    EXPECT_EQ(rounded_to(type, -(1 + 5 * ulp / 8)), -(1 + ulp));
    EXPECT_EQ(rounded_to(type, 2 - ulp / 4), 2);
    EXPECT_TRUE(std::isinf(rounded_to(type, std::numeric_limits<double>::infinity())));
    EXPECT_TRUE(std::isnan(rounded_to(type, std::numeric_limits<double>::quiet_NaN())));
  }
  EXPECT_EQ(rounded_to(OperandType::bf16, 1 + 8 * ulp), 1 + 8 * ulp);
  EXPECT_EQ(rounded_to(OperandType::bf16, 1 + 4 * ulp), 1);
  EXPECT_TRUE(std::isinf(rounded_to(OperandType::f16, 1e6)));
  EXPECT_EQ(rounded_to(OperandType::tf32, std::ldexp(1.0, 100)), std::ldexp(1.0, 100));
  EXPECT_EQ(rounded_to(OperandType::own, 0.1), 0.1);
}

TEST(GemmOperands, AreReadBack) {
  GemmParams params;
  for (const OperandType type : {OperandType::own, OperandType::f16, OperandType::bf16, OperandType::tf32}) {
    params.operands = type;
    const auto back = params_from_text(Family::gemm, to_text(params));
    ASSERT_TRUE(back.ok()) << to_text(params);
    EXPECT_EQ(get<GemmParams>(*back), params);
  }
}

}  // namespace sparkle
