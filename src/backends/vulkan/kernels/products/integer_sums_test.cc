// Integer stages on Vulkan against the 64-bit reference, byte for byte: every variant, on random shapes and layouts with the
// extreme values of their types among the operands.
#include <span>

#include "backends/vulkan/vulkan_testing.h"
#include "families/depthwise/depthwise.h"
#include "families/gemm/gemm.h"
#include "families/integers/integers.h"
#include "families/registry.h"
#include "families/loops/tile_schedule.h"

namespace sparkle::vulkan {
namespace {

using cpu::TestRandom;

// What a pipeline has bound, fixed so that many shapes need few of them: software devices take seconds for a tile.
struct Style {
  DType a, b, y;
  bool scale, bias, words, packed;
  Triple filter, stride;
  int m, n;  // the tile
};
constexpr DType kU8 = DType::u8, kI8 = DType::i8, kI32 = DType::i32, kI16 = DType::i16;
constexpr Style kWindows[] = {{kU8, kI8, kU8, true, true, true, true, {1, 1, 1}, {1, 1, 1}, 32, 32},
                              {kI8, kU8, kI8, true, false, false, false, {1, 3, 2}, {1, 2, 1}, 64, 64},
                              {kU8, kU8, kI32, false, true, true, true, {2, 2, 3}, {1, 1, 2}, 64, 64}};
constexpr Style kProducts[] = {{kU8, kI8, kU8, true, true, true, true, {1, 1, 1}, {1, 1, 1}, 32, 32},
                               {kI8, kI8, kI32, false, false, false, false, {1, 1, 1}, {1, 1, 1}, 64, 64},
                               {kU8, kU8, kI8, true, true, false, true, {1, 1, 1}, {1, 1, 1}, 64, 64}};
constexpr Style kRows[] = {{kU8, kI16, kU8, true, true, true, true, {1, 3, 3}, {1, 1, 1}, 0, 0},
                           {kI8, kU8, kI8, true, false, true, false, {1, 5, 4}, {1, 2, 2}, 0, 0},
                           {kU8, kI8, kI32, false, true, true, true, {2, 2, 3}, {1, 1, 2}, 0, 0}};

class Case {
 public:
  // `style`: nullptr for any.
  Case(uint64_t seed, bool depthwise, bool window, const Style* style) : random_(seed), style_(style) {
    Epilogue e;
    e.scale = style ? style->scale : random_.chance(80);
    e.bias = style ? style->bias : random_.chance(60);
    const DType a = style ? style->a : byte(), y = style ? style->y : e.scale ? byte() : kI32;
    const DType b = style ? style->b : depthwise && random_.chance(50) ? kI16 : byte();
    if (e.scale && random_.chance(30)) {
      e.activation = Activation::clip;
      e.a = static_cast<double>(range_of(y).low + random_.between(0, 60));
      e.b = static_cast<double>(range_of(y).high - random_.between(0, 60));
    }
    // Half of all in whole words, as most networks are.
    words_ = style ? style->words : random_.chance(50);
    int64_t channels = 0, depth = 0;
    if (window) {
      fill_window(depthwise, a, b, y, e, channels, depth);
    } else {
      fill_dense(a, b, y, e, channels, depth);
    }
    const auto list = [&](DType type, bool per_channel) {
      const Dims shape{per_channel ? channels : 1};
      stage.inputs.push_back({type, shape, row_major(shape)});
    };
    if (e.scale) list(DType::f32, random_.chance(50));
    if (e.bias) list(DType::i32, true);
    list(a, false), list(b, random_.chance(30));
    if (e.scale) list(y, false);
    const IntegerOperands at = integer_operands(e);
    for (const TensorDesc& desc : stage.inputs) inputs.emplace_back(desc);
    outputs.emplace_back(stage.outputs[0]);
    for (const int i : {0, 1, at.a_zero, at.b_zero, at.y_zero})
      if (i >= 0) fill_integers(inputs[static_cast<size_t>(i)]);
    if (at.bias >= 0)
      inputs[static_cast<size_t>(at.bias)].fill(
          [&] { return static_cast<double>(random_.between(-9, 9) * (random_.chance(5) ? 200000000 : 3000)); });
    // Most results lie within the type, some far outside.
    const double step = 1.0 / (60.0 * std::sqrt(static_cast<double>(depth)));
    if (at.scale >= 0)
      inputs[static_cast<size_t>(at.scale)].fill([&] { return step * static_cast<double>(random_.between(1, 200)) / 100; });
  }

  Stage stage;
  std::vector<TestOperand> inputs, outputs;
  TestRandom& random() { return random_; }

 private:
  DType byte() { return random_.chance(50) ? DType::u8 : DType::i8; }
  int64_t count(int64_t most) {
    return words_ ? 4 * random_.between(1, std::max<int64_t>(1, most / 4)) : random_.between(1, most);
  }

  TensorDesc desc(DType type, const Dims& shape, const Dims& order) {
    TensorDesc d{type, shape, {}};
    d.layout.order = order;
    d.layout.strides = Dims::filled(shape.size(), 0);
    const int64_t gap = words_ || random_.chance(50) ? 0 : 3;
    int64_t step = 1;
    for (int i = order.size() - 1; i >= 0; --i) {
      d.layout.strides[static_cast<int>(order[i])] = step;
      step = step * shape[static_cast<int>(order[i])] + random_.between(0, gap);
    }
    d.layout.offset = random_.between(0, gap);
    return d;
  }

  void fill_window(bool depthwise, DType a, DType b, DType y, const Epilogue& e, int64_t& channels, int64_t& depth) {
    Window w;
    const int spatial = style_ ? style_->filter[0] > 1 ? 3 : 2 : static_cast<int>(random_.between(1, 3));
    const int64_t groups = depthwise ? count(70) : random_.chance(25) ? random_.between(2, 3) : 1;
    const int64_t c = depthwise ? 1 : count(40), multiplier = style_ || random_.chance(70) ? 1 : random_.between(1, 3);
    channels = groups * (depthwise ? multiplier : count(90));
    Dims x{random_.between(1, 2), groups * c}, out{x[0], channels}, filters{channels, c}, last{0}, first{0, 1};
    for (int i = 0; i < spatial; ++i) {
      const auto at = static_cast<size_t>(3 - spatial + i);
      w.filter[at] = style_ ? style_->filter[at] : random_.between(1, spatial == 3 ? 3 : 5);
      w.stride[at] = style_ ? style_->stride[at] : random_.between(1, random_.chance(20) ? 3 : 2);
      w.dilation[at] = random_.chance(75) || (style_ && depthwise) ? 1 : 2;
      w.pad_begin[at] = random_.between(-1, 3);
      x.push_back(random_.between(1, spatial == 3 ? 5 : 12));
      out.push_back(random_.between(1, 9));
      filters.push_back(w.filter[at]);
      last.push_back(2 + i), first.push_back(2 + i);
    }
    last.push_back(1);
    depth = c * w.taps();
    if (depthwise) {
      stage.params = DepthwiseParams{w, e};
    } else {
      stage.params = GemmParams{Loader::window, groups, w, e};
    }
    stage.inputs = {desc(a, x, words_ || random_.chance(70) ? last : first), {b, filters, row_major(filters)}};
    stage.outputs = {desc(y, out, words_ || random_.chance(70) ? last : first)};
  }

  void fill_dense(DType a, DType b, DType y, const Epilogue& e, int64_t& channels, int64_t& depth) {
    const int batch = static_cast<int>(random_.between(0, 2)), rank = batch + 2;
    const int64_t m = random_.between(1, 90);
    depth = count(300), channels = count(200);
    Dims left, right, out, row, swapped;
    for (int i = 0; i < batch; ++i) {
      const int64_t size = random_.between(1, 3);
      left.push_back(size), right.push_back(size), out.push_back(size);
    }
    left.push_back(m), left.push_back(depth), right.push_back(depth), right.push_back(channels);
    out.push_back(m), out.push_back(channels);
    for (int i = 0; i < rank; ++i) row.push_back(i);
    swapped = row;
    std::swap(swapped[rank - 1], swapped[rank - 2]);
    stage.params = GemmParams{Loader::dense, 1, {}, e};
    stage.inputs = {desc(a, left, !words_ && random_.chance(25) ? swapped : row),
                    desc(b, right, random_.chance(40) ? swapped : row)};
    for (int i = 0; i < batch; ++i)
      for (TensorDesc& d : stage.inputs)
        if (random_.chance(30)) d.layout.strides[i] = 0;
    stage.outputs = {desc(y, out, row)};
  }

  // All values, the extreme ones often: 255 * -128 four times in a row overflows 16 bits.
  void fill_integers(TestOperand& t) {
    IntegerRange range = range_of(t.desc.dtype);
    if (t.desc.dtype == DType::i16) range = {-255, 255};
    const bool extreme = random_.chance(40);
    t.fill([&] {
      if (extreme) return static_cast<double>(random_.chance(50) ? range.low : range.high);
      return static_cast<double>(random_.between(range.low, range.high));
    });
  }

  TestRandom random_;
  const Style* style_;
  bool words_ = false;
};

void check(Family which, const std::string& variant, bool window, std::span<const Style> styles, int cases, uint64_t seed) {
  SPARKLE_NEEDS_VULKAN(backend);
  const FamilyInfo& family = info(which);
  const auto row =
      std::find_if(family.variants.begin(), family.variants.end(), [&](const Variant& v) { return v.name == variant; });
  ASSERT_NE(row, family.variants.end());
  // Dot products work on every device, fast or not.
  Device device = backend->device();
  if (!device.unit("dot-i8")) {
    device.units.emplace_back();
    device.units.back().name = "dot-i8";
    device.units.back().kind = UnitKind::dot_product;
  }
  for (int i = 0; i < cases && !::testing::Test::HasFailure(); ++i) {
    const Style* style = styles.empty() ? nullptr : &styles[static_cast<size_t>(i) % styles.size()];
    Case c(seed + static_cast<uint64_t>(i), which == Family::depthwise, window, style);
    Reason why = Reason::none;
    const auto schedules = family.schedules(c.stage, *row, device, why);
    ASSERT_FALSE(schedules.empty()) << code_of(why);
    const auto wanted_tile = std::find_if(schedules.begin(), schedules.end(), [&](const Schedule& s) {
      const auto* tile = get_if<TileSchedule>(&s);
      return !tile || !style || (tile->m == style->m && tile->n == style->n && tile->thread_m == 4);
    });
    ASSERT_NE(wanted_tile, schedules.end());
    const Schedule& schedule = *wanted_tile;
    const uint32_t constants = (style ? style->packed : c.random().chance(50)) ? 2 : 0;
    auto wanted = reference_outputs(c.stage, c.inputs);
    const Status ran = run_stage(*backend, c.stage, schedule, c.inputs, c.outputs, constants);
    ASSERT_TRUE(ran.ok()) << ran.error().message;
    expect_close(
        c.outputs[0], wanted[0], 0,
        "seed " + std::to_string(seed + static_cast<uint64_t>(i)) + " " + to_text(schedule) + " " + to_text(c.stage.params));
  }
}

TEST(VulkanIntegers, NaiveWindow) { check(Family::gemm, "bytes_naive", true, {}, 60, 1); }
TEST(VulkanIntegers, NaiveDense) { check(Family::gemm, "bytes_naive", false, {}, 40, 1001); }
TEST(VulkanIntegers, NaiveDepthwise) { check(Family::depthwise, "bytes_naive", true, {}, 60, 2001); }
TEST(VulkanIntegers, TileWindow) { check(Family::gemm, "bytes_tile", true, kWindows, 45, 3001); }
TEST(VulkanIntegers, TileDense) { check(Family::gemm, "bytes_tile", false, kProducts, 45, 4001); }
TEST(VulkanIntegers, DotTileWindow) { check(Family::gemm, "dot_tile", true, kWindows, 45, 5001); }
TEST(VulkanIntegers, DotTileDense) { check(Family::gemm, "dot_tile", false, kProducts, 45, 6001); }
TEST(VulkanIntegers, DepthwiseRows) { check(Family::depthwise, "bytes_row", true, kRows, 45, 7001); }

}  // namespace
}  // namespace sparkle::vulkan
