#include "families/depthwise/depthwise_gpu.h"

#include <algorithm>
#include <cmath>

#include "families/common.h"
#include "families/depthwise/depthwise.h"
#include "families/gemm/gemm.h"
#include "families/integers/integers.h"
#include "families/loops/chunk_move.h"

namespace sparkle {
namespace {

// A thread keeps a row of the input under its outputs' filters in registers: up to so many taps.
constexpr int64_t kRowTaps = 7;

// Stages on 8-bit integers.
std::vector<Schedule> integer_schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not) {
  const WhyNot refuse{why_not};
  const MathUnit* unit = best_vector_unit(device);
  if (!unit) return refuse(Reason::unit_missing);
  const FeatureMap x = feature_map(stage.inputs[0]), y = feature_map(stage.outputs[0]);
  if (x.c == 0 || y.c % x.c != 0) return refuse(Reason::groups_not_served);
  const Window& w = get<DepthwiseParams>(stage.params).window;
  DepthwiseSchedule s;
  s.variant = variant.name;
  s.unit = unit->name;
  if (variant.name != "bytes_naive") {
    if (x.c != y.c) return refuse(Reason::groups_not_served);
    if (!channels_in_vec4(stage.inputs[0]) || !channels_in_vec4(stage.outputs[0])) return refuse(Reason::layout_not_served);
  }
  if (variant.name == "bytes_row") {
    if (w.dilation[2] != 1 || w.filter[2] > kRowTaps || w.stride[2] > 2) return refuse(Reason::filter_not_served);
    s.columns = 4;
  }
  return {s};
}

}  // namespace

std::vector<Schedule> depthwise_gpu_schedules(const Stage& stage, const Variant& variant, int columns, const Device& device,
                                              Reason& why_not) {
  const WhyNot refuse{why_not};
  const bool on_bytes = variant.name.starts_with("bytes_");
  if (on_bytes != is_integer(stage.inputs)) return refuse(Reason::type_not_served);
  if (on_bytes) return integer_schedules(stage, variant, device, why_not);
  const MathUnit* unit = best_vector_unit(device);
  if (!unit) return refuse(Reason::unit_missing);
  if (!stores_reals(variant, device, stage)) return refuse(Reason::type_not_served);
  const Window& w = get<DepthwiseParams>(stage.params).window;
  const FeatureMap x = feature_map(stage.inputs[0]), y = feature_map(stage.outputs[0]);
  if (x.c == 0 || y.c % x.c != 0) return refuse(Reason::groups_not_served);
  if (variant.name != "naive") {
    if (y.c != x.c) return refuse(Reason::groups_not_served);
    if (!channels_in_vec4(stage.inputs[0]) || !channels_in_vec4(stage.outputs[0])) return refuse(Reason::layout_not_served);
  }
  if (variant.name == "vectors") {
    // Beyond, the tile's products are too many to write out, or its outputs share nothing.
    for (size_t i = 1; i < 3; ++i)
      if (w.filter[i] > 5 || w.stride[i] > 2 || w.dilation[i] > columns) return refuse(Reason::filter_not_served);
    if (w.filter[0] != 1) return refuse(Reason::filter_not_served);
  }
  DepthwiseSchedule s;
  s.variant = variant.name;
  s.unit = unit->name;
  s.rows = variant.rows;
  s.columns = columns;
  std::vector<Schedule> found{s};
  // Rows that are far apart, or few outputs in all, do better one row at a time.
  if (s.rows > 1) {
    s.rows = 1;
    found.emplace_back(s);
  }
  return found;
}

void depthwise_gpu_footprint(const Stage& stage, const DepthwiseSchedule& s, const Device& device, double inside,
                             Footprint& f) {
  const Window& w = get<DepthwiseParams>(stage.params).window;
  const FeatureMap y = feature_map(stage.outputs[0]);
  const bool naive = s.variant == "naive" || s.variant == "bytes_naive",
             tiles = s.variant == "vectors" || s.variant == "bytes_row";
  const auto size = static_cast<double>(size_of(stage.inputs[0].dtype));
  const auto outputs = static_cast<double>(y.n * y.d * y.c);
  const double rows = std::ceil(static_cast<double>(y.h) / s.rows), columns = std::ceil(static_cast<double>(y.w) / s.columns);
  // One by one, taps outside are skipped, and each costs its index arithmetic, which four channels may share; a tile does its
  // products with zeros.
  f.executed_flops = !tiles ? (naive ? 8 : 4) * inside * static_cast<double>(y.c)
                            : 2 * outputs * rows * s.rows * columns * s.columns * static_cast<double>(w.taps());
  // As for products of integers without dot products (gemm_integer_tiles.cc).
  if (is_integer(stage.inputs)) f.executed_flops *= naive ? 2 : 2.5;
  const auto reach = [&](size_t i, int tile) {
    return static_cast<double>((tile - 1) * w.stride[i] + (w.filter[i] - 1) * w.dilation[i] + 1);
  };
  const double pixels =
      !tiles ? static_cast<double>(y.h * y.w * w.taps()) : rows * columns * reach(1, s.rows) * reach(2, s.columns);
  for (size_t i = 0; i < f.bytes.size(); ++i) {
    if (device.memory[i].filled_by_hand) continue;
    f.bytes[i] = std::max(f.bytes[i], size * outputs * pixels);
    break;
  }
  f.parallel_items = std::max(1.0, outputs * rows * columns / (naive ? 64 : 256));
}

Stage as_groups(const Stage& stage) {
  const auto& p = get<DepthwiseParams>(stage.params);
  GemmParams g;
  g.loader = Loader::window;
  g.groups = feature_map(stage.inputs[0]).c;
  g.window = p.window;
  g.epilogue = p.epilogue;
  return {g, stage.inputs, stage.outputs};
}

}  // namespace sparkle
