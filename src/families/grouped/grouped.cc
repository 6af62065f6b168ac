// What the grouped family tells the planner: variants, predicted work and traffic, schedules worth ranking.
#include "families/grouped/grouped.h"

#include <algorithm>
#include <cmath>

#include "families/common.h"
#include "families/gemm/gemm_family.h"
#include "families/gemm/gemm_shape.h"
#include "families/grouped/grouped_family.h"
#include "families/loops/grain.h"
#include "families/loops/loop_traffic.h"
#include "families/loops/rows_in_cache.h"
#include "families/windows/taps.h"
#include "families/windows/window_samples.h"

namespace sparkle {
namespace {

constexpr Variant kVariants[] = {
#include "families/grouped/variants.inc"
};
constexpr TypeRow kTypeRows[] = {
    {"", "Conv with groups of a few channels", kFloats, kInF32},
};

// Spread inputs of a task: a share of the L1 that leaves room for weights and outputs.
constexpr int64_t kSpreadBytes = 36 * 1024;

std::vector<Schedule> schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not) {
  const WhyNot refuse{why_not};
  if (variant.name == "plain") return loop_schedules(stage, variant, device, why_not);
  if (!variant.runs_on(device)) return refuse(Reason::backend_lacks_variant);
  std::vector<const MathUnit*> units = vector_units(device);
  if (units.empty()) return refuse(Reason::unit_missing);
  // Vectors without a fixed length cannot lie in the arrays of registers that the tile is written with.
  std::erase_if(units, [](const MathUnit* unit) { return unit->name == "sve"; });
  if (units.empty()) return refuse(Reason::backend_lacks_variant);
  for (const TensorDesc& desc : stage.inputs)
    if (desc.dtype != DType::f32) return refuse(Reason::type_not_served);
  const auto& p = get<GroupedParams>(stage.params);
  const FeatureMap x = feature_map(stage.inputs[0]), y = feature_map(stage.outputs[0]);
  if (x.channel_stride != 1 || y.channel_stride != 1) return refuse(Reason::layout_not_served);
  const MathUnit* unit = units.front();
  const int64_t lanes = std::max(1, unit->n), depth = x.c / p.groups;
  if (lanes % depth != 0) return refuse(Reason::groups_not_served);
  const Window& w = p.window;
  // Filters taller than any ring are refused before their sizes are multiplied.
  if (w.filter[1] > kMostGroupedRing || w.dilation[1] > kMostGroupedRing || w.filter[2] > kMostGroupedRing ||
      w.dilation[2] > kMostGroupedRing)
    return refuse(Reason::filter_not_served);
  const int64_t ring = (w.filter[1] - 1) * w.dilation[1] + 1, reach = (w.filter[2] - 1) * w.dilation[2] + 1;
  const int64_t column_bytes = (variant.name == "permute" ? 1 : depth) * lanes * 4;
  const int64_t most = (kSpreadBytes / (ring * column_bytes) - reach) / w.stride[2] + 1;
  if (ring > kMostGroupedRing || most < 4) return refuse(Reason::filter_not_served);
  GroupedSchedule s;
  s.variant = variant.name;
  s.unit = unit->name;
  const int64_t blocks = (y.w + most - 1) / most;
  s.columns = std::max<int64_t>(1, (y.w + blocks - 1) / std::max<int64_t>(1, blocks));
  s.rows = group_rows(x, y, std::min<int64_t>(w.stride[1], kMostGroupedRing), device);
  const int64_t padded = (y.c + lanes - 1) / lanes * lanes;
  const double products = static_cast<double>(y.n * y.pixels() * padded) * static_cast<double>(depth * w.taps());
  s.grain = grain_of(stage.outputs[0].elements(), planned_tasks(products, kLeastProducts, 8, device));
  return {s};
}

Footprint footprint(const Stage& stage, const Schedule& schedule, const Device& device) {
  const auto& p = get<GroupedParams>(stage.params);
  const FeatureMap x = feature_map(stage.inputs[0]), y = feature_map(stage.outputs[0]);
  const GemmSizes sizes = gemm_sizes(as_convolution(p), stage.inputs, stage.outputs[0]);
  const double depth = static_cast<double>(sizes.k) / static_cast<double>(std::max<int64_t>(1, p.window.taps()));
  Footprint f = streaming_footprint(stage, device, 0);
  f.nominal_flops = 2.0 * static_cast<double>(sizes.instances) * static_cast<double>(sizes.m) * static_cast<double>(sizes.n) *
                    static_cast<double>(sizes.k);
  f.executed_flops = 2 * static_cast<double>(sizes.instances) * sizes.k_steps * static_cast<double>(sizes.n);
  f.function_flops = activation_flops(p.epilogue.activation, static_cast<double>(stage.outputs[0].elements()), device);
  f.parallel_items = 1;
  const auto* s = get_if<GroupedSchedule>(&schedule);
  const MathUnit* unit = s ? device.unit(s->unit) : nullptr;
  if (!unit || sizes.m == 0) return f;
  const double lanes = std::max(1, unit->n), blocks = std::ceil(static_cast<double>(y.c) / lanes);
  f.executed_flops *= blocks * lanes / static_cast<double>(y.c);
  const double column_blocks = std::ceil(static_cast<double>(y.w) / static_cast<double>(s->columns));
  const double row_blocks = s->rows > 0 ? std::ceil(static_cast<double>(y.h) / static_cast<double>(s->rows)) : 1;
  // Inputs are written to the ring, spread ones once per lane of their group, for each block of rows and columns again where
  // windows overlap, which nothing hides. Three taps side by side load each input once for all outputs of a call, others once
  // per product; permuted ones for each channel of their group.
  const Window& w = p.window;
  const double pixel = depth * lanes * 4, column = s->variant == "permute" ? lanes * 4 : pixel;
  const double columns = static_cast<double>(y.w) / column_blocks, rows = static_cast<double>(y.h) / row_blocks;
  const auto reach = [&](size_t axis, double outputs, int64_t in) {
    return std::min(static_cast<double>(in), (outputs - 1) * static_cast<double>(w.stride[axis]) +
                                                 static_cast<double>((w.filter[axis] - 1) * w.dilation[axis] + 1));
  };
  const double spread =
      static_cast<double>(y.n) * blocks * column_blocks * row_blocks * reach(1, rows, x.h) * reach(2, columns, x.w) * column;
  const bool slides = w.filter[2] == 3 && w.dilation[2] == 1 && w.stride[2] <= 2;
  const double tiles = std::ceil(columns / grouped_pixels(s->variant, *unit));
  const double calls = static_cast<double>(y.n * y.h) * blocks * column_blocks * tiles;
  const double outputs = columns / tiles;
  const double taps = static_cast<double>(w.filter[2]),
               loads = slides ? (outputs - 1) * static_cast<double>(w.stride[2]) + 3 : outputs * taps;
  if (!f.bytes.empty()) {
    f.exposed.assign(f.bytes.size(), 0);
    const double rows_of_filters = calls * static_cast<double>(w.filter[1]);
    // A quarter of the time of a permuted load shows beside the products (Zen 4).
    f.exposed[0] = 2 * spread + (s->variant == "permute" ? 0.25 * rows_of_filters * loads * pixel : 0);
    f.bytes[0] =
        rows_of_filters * (loads + taps) * pixel + spread * (1 + 1 / depth) + static_cast<double>(stage.outputs[0].bytes());
    f.port_bytes = std::max(f.bytes[0], f.exposed[0]);
  }
  // Images, rows of a task, blocks of channels, columns of a task, rows, tiles: what each loop touches of the weights, of the
  // ring, of outputs and of inputs on their way into the ring, these in whole lines.
  const double line = std::max(64.0, lanes * 4), all = static_cast<double>(y.c) * 4;
  const double span =
      (columns - 1) * static_cast<double>(w.stride[2]) + static_cast<double>((w.filter[2] - 1) * w.dilation[2] + 1);
  const double inside = std::min(span, static_cast<double>(x.w));
  const double filter_rows =
      taps_inside({x.h, y.h, w.filter[1], w.stride[1], w.dilation[1], w.pad_begin[1]}) / static_cast<double>(y.h);
  const double row = inside * column, ring = static_cast<double>((w.filter[1] - 1) * w.dilation[1] + 1) * row;
  const double read = reach(1, rows, x.h), weights = static_cast<double>(w.taps()) * pixel;
  const double fresh = static_cast<double>(std::min(w.stride[1], w.filter[1])) * inside * line;
  const double out = static_cast<double>(y.w), in = static_cast<double>(x.w), high = static_cast<double>(x.h),
               images = static_cast<double>(y.n);
  LoopNest<4> nest({weights, filter_rows * row / tiles, outputs * line, 0});
  nest.around(tiles, {weights, filter_rows * row, columns * line, 0});
  nest.around(1, {weights, filter_rows * row, columns * line, fresh});
  nest.around(rows, {weights, ring, rows * columns * line, read * inside * line});
  nest.around(column_blocks, {weights, ring, rows * out * line, read * in * line});
  nest.around(blocks, {weights * blocks, ring, rows * out * all, read * in * all});
  nest.around(row_blocks, {weights * blocks, ring, static_cast<double>(y.h) * out * all, high * in * all});
  nest.around(images, {weights * blocks, ring, images * static_cast<double>(y.h) * out * all, images * high * in * all});
  double other = 0;
  for (size_t i = 2; i < stage.inputs.size(); ++i) other += static_cast<double>(stage.inputs[i].bytes());
  for (size_t i = 1; i < f.bytes.size(); ++i) {
    const double inner = static_cast<double>(device.memory[i - 1].bytes);
    double bytes = 0;
    if (nest.touched() + other > inner) {
      for (const size_t operand : {0, 1, 2, 3}) bytes += nest.asked(operand, inner);
      // A ring that does not stay is carried away as well.
      if (nest.asked(1, inner) > 2 * ring * images * row_blocks * blocks * column_blocks) bytes += spread;
      bytes += other;
    }
    f.bytes[i] = std::min(bytes, f.bytes[i - 1]);
  }
  f.parallel_items = static_cast<double>(y.n) * blocks * column_blocks * row_blocks;
  f.calls = calls;
  return f;
}

std::vector<SampleForm> sample_forms() {
  GroupedParams p;
  p.groups = 8;
  p.window = small_window();
  p.epilogue.bias = true;
  return {{p, {DType::f32, DType::f32, DType::f32}, {DType::f32}}};
}

// Groups of a part of a vector, and whole ones.
std::vector<Stage> samples(const SampleRequest& t) {
  const auto& p = get<GroupedParams>(t.params);
  if (!of_one_real(t)) return {};
  std::vector<Stage> stages;
  for (const int64_t depth : {4, 8, 16})
    stages.push_back(
        with_types(window_sample(p, p.window, &p.epilogue, {p.groups * depth, p.groups * depth, depth, 17}, 0), t));
  return stages;
}

SampleRules comparison(const Stage& stage) { return {.products = static_cast<double>(products_of(stage))}; }

}  // namespace

const FamilyInfo& grouped_info() {
  static const FamilyInfo family = {
      .params = ParamsType::of<GroupedParams>,
      .variants = kVariants,
      .types = kTypeRows,
      .reference = convolution_reference<GroupedParams>,
      .footprint = footprint,
      .blocking = grouped_blocking,
      .schedules = schedules,
      .sample_forms = sample_forms,
      .samples = samples,
      .comparison = comparison,
      .cpu_schedule = &ScheduleType::of<GroupedSchedule>,
  };
  return family;
}

}  // namespace sparkle
