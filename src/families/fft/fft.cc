// What the fft family tells the planner: variants, predicted work and traffic, schedules worth ranking.
#include "families/fft/fft.h"

#include <algorithm>
#include <cmath>

#include "families/common.h"
#include "families/fft/fft_family.h"
#include "families/gemm/gemm_family.h"
#include "families/windows/window_samples.h"

namespace sparkle {
namespace {

constexpr Variant kVariants[] = {
#include "families/fft/variants.inc"
};
constexpr TypeRow kTypeRows[] = {
    {"", "Conv with a large filter", kFloats, kInF32},
};

// Sizes beyond these are refused before they are multiplied.
constexpr int64_t kMostSize = int64_t{1} << 40;
constexpr double kMostScratchBytes = 256e6;
// What calls of lines and rows take beside their passes, to rank schedules by.
constexpr double kCallCycles = 50;
constexpr size_t kMostSizes = 10, kMostSchedules = 8;

const FftParams& params_of(const Stage& stage) { return get<FftParams>(stage.params); }

// Cycles that a transform takes for each of its points, with one vector product and one addition a cycle: measured, see
// docs/performance.md. Stores and additions are what they go into, more than products.
double cycles_of_point(int64_t points, int registers) {
  double cycles = 0;
  for (const int radix : fft_radices(points, registers)) cycles += radix == 8 ? 7.5 : radix == 5 ? 6.5 : radix == 3 ? 5.5 : 5;
  return cycles;
}

std::vector<Schedule> schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not) {
  const WhyNot refuse{why_not};
  if (variant.name == "plain") return loop_schedules(stage, variant, device, why_not);
  if (!variant.runs_on(device)) return refuse(Reason::backend_lacks_variant);
  const FftParams& p = params_of(stage);
  const FeatureMap x = feature_map(stage.inputs[0]), y = feature_map(stage.outputs[0]);
  if (p.groups < 1 || x.c % p.groups != 0 || y.c % p.groups != 0) return refuse(Reason::groups_not_served);
  if (x.d != 1 || y.d != 1 || p.window.filter[0] != 1) return refuse(Reason::filter_not_served);
  for (size_t i = 1; i < 3; ++i) {
    const int64_t in = i == 1 ? x.h : x.w, out = i == 1 ? y.h : y.w, pad = p.window.pad_begin[i];
    const bool small = in < kMostSize && out < kMostSize && pad < kMostSize && pad > -kMostSize &&
                       p.window.filter[i] <= kMostFftPoints && p.window.dilation[i] <= kMostFftPoints &&
                       p.window.stride[i] <= kMostFftPoints;
    if (!small || in < 1 || out < 1) return refuse(Reason::filter_not_served);
  }
  if (variant.for_workgroups()) return fft_tile_schedules(stage, variant, device, why_not);

  const MathUnit* unit = best_vector_unit(device);
  if (!unit) return refuse(Reason::unit_missing);
  for (const TensorDesc& desc : stage.inputs)
    if (desc.dtype != DType::f32) return refuse(Reason::type_not_served);
  if ((x.c > 1 && x.channel_stride != 1) || (y.c > 1 && y.channel_stride != 1)) return refuse(Reason::layout_not_served);
  const int registers = registers_of(*unit);
  const int64_t lanes = std::max(1, unit->n);
  const FftAxis height = fft_axis(stage, 1);
  const std::vector<int64_t> rows = height.filter == 1 ? std::vector<int64_t>{1} : fft_sizes_for(height, kMostSizes);
  // One axis alone: many tiles may fill the lanes better than few large ones.
  const std::vector<int64_t> columns = fft_sizes_for(fft_axis(stage, 2), height.filter == 1 ? kMostFftPoints : kMostSizes);
  struct Found {
    FftSchedule schedule;
    double cycles;
  };
  std::vector<Found> found;
  const bool sums = variant.name == "channels" && x.c > p.groups;
  for (const int64_t r : rows)
    for (const int64_t c : columns)
      for (const int64_t strip : {1, 4, 8}) {
        if (strip > 1 && !sums) break;
        const FftSchedule s{std::string(variant.name), std::string(unit->name), r, c, strip};
        const FftWork w = fft_work(stage, s, lanes, registers);
        if (w.points * 8 * static_cast<double>(lanes) > kMostScratchBytes || w.weights > kMostScratchBytes) continue;
        found.push_back({s, w.strips * w.parts * (w.passes + kFftProductCycles * w.products + kCallCycles * w.calls)});
      }
  if (found.empty()) return refuse(Reason::filter_not_served);
  std::stable_sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.cycles < b.cycles; });
  std::vector<Schedule> list;
  for (const Found& f : found)
    if (list.size() < kMostSchedules) list.emplace_back(f.schedule);
  return list;
}

// Few groups, or as many as channels where each has a filter of its own: how many there are is no matter of the kernel's.
Stage fft_sample(const SampleRequest& t, int64_t wide, int64_t gap) {
  auto p = get<FftParams>(t.params);
  const bool single = variant_of(t.schedule) == "whole";
  p.groups = single ? wide : std::min<int64_t>(p.groups, 2);
  Stage stage = window_sample(p, p.window, &p.epilogue, p.groups, single, wide, gap);
  // Transforms of maps that are smaller than their filters are too short for others.
  const auto* schedule = get_if<FftTileSchedule>(&t.schedule);
  Dims x = stage.inputs[0].shape;
  for (const int axis : {3, 4})
    for (bool supported = !schedule; !supported && x[axis] > 1;) {
      FftAxis cut_axis = fft_axis(stage, static_cast<size_t>(axis - 2));
      supported = cut(cut_axis, axis == 3 ? schedule->rows : schedule->columns);
      if (!supported) --x[axis], stage.inputs[0] = described(DType::f32, x, true, gap);
    }
  return stage;
}

std::vector<SampleForm> sample_forms() {
  FftParams p;
  p.window.filter = {1, 15, 15}, p.window.pad_begin = p.window.pad_end = {0, 7, 7};
  return {{p, {DType::f32, DType::f32}, {DType::f32}}};
}

std::vector<Stage> samples(const SampleRequest& t) {
  if (!of_one_real(t)) return {};
  return {with_types(fft_sample(t, 3, 1), t), with_types(fft_sample(t, 8, 0), t)};
}

SampleRules comparison(const Stage&) { return {.spreads_nan = true}; }

}  // namespace

std::vector<int64_t> fft_sizes_for(const FftAxis& axis, size_t most) {
  struct Size {
    int64_t points;
    double work;
  };
  std::vector<Size> found;
  int64_t tiles = 0;
  for (const int64_t points : fft_sizes(1, kMostFftPoints)) {
    FftAxis attempt = axis;
    if (!cut(attempt, points) || attempt.tiles == tiles) continue;
    tiles = attempt.tiles;
    found.push_back(
        {points, static_cast<double>(tiles) * static_cast<double>(points) * std::log2(2.0 * static_cast<double>(points))});
    if (tiles == 1) break;
  }
  std::stable_sort(found.begin(), found.end(), [](const Size& a, const Size& b) { return a.work < b.work; });
  std::vector<int64_t> sizes;
  for (const Size& size : found)
    if (sizes.size() < most) sizes.push_back(size.points);
  return sizes;
}

FftWork fft_work(const Stage& stage, const FftSchedule& s, int64_t lanes, int registers) {
  const auto d = [](int64_t n) { return static_cast<double>(n); };
  const auto vectors = [&](int64_t n) { return d((n + lanes - 1) / lanes); };
  FftWork w;
  FftAxis &height = w.height, &width = w.width;
  height = fft_axis(stage, 1), width = fft_axis(stage, 2);
  if (!cut(height, s.rows) || !cut(width, s.columns)) return w;
  const FeatureMap x = feature_map(stage.inputs[0]), y = feature_map(stage.outputs[0]);
  const int64_t groups = std::max<int64_t>(1, params_of(stage).groups), depth = x.c / groups, filters = y.c / groups;
  const bool tiled = s.variant == "tiles", single = !tiled && depth == 1 && filters == 1, flat = s.rows == 1;
  const double slot_tiles = (tiled ? d(lanes) : 1.0) * (flat ? 2 : 1);
  const double slots = std::ceil(d(y.n) * d(height.tiles) * d(width.tiles) / slot_tiles);
  const double strip = tiled || single ? 1 : std::min(slots, d(s.strip));
  const double in_slots = tiled ? d(depth) : vectors(depth), out_slots = tiled ? d(filters) : vectors(filters);
  w.tiled = tiled, w.single = single, w.flat = flat;
  w.slots = slots, w.slot_tiles = slot_tiles, w.strip = strip, w.in_slots = in_slots, w.out_slots = out_slots;
  const double lines = flat ? 1 : d(s.columns / 2 + 1), line = flat ? d(s.columns) : d(s.rows), plane = lines * line;
  w.lines = lines, w.line = line;
  w.strips = std::ceil(slots / strip);
  w.parts = single ? vectors(x.c) : d(groups);
  const double line_cycles = plane * cycles_of_point(static_cast<int64_t>(line), registers);
  // Single elements in and out where lanes are tiles, a cycle or more each; else a vector.
  const double move = tiled ? 1.5 * d(lanes) : 3;
  w.calls = (in_slots + out_slots) * (tiled ? d(lanes) : 10);
  double in = line_cycles + 2 * d(s.columns) * move, out = line_cycles + 2 * d(width.tile) * move;
  if (!flat) {
    const double row = d(s.columns) * cycles_of_point(s.columns, registers);
    const double rows_in = d(std::min(height.in, height.span())), rows_out = d(height.tile);
    in = line_cycles + rows_in / 2 * (row + 2 * d(std::min(width.in, s.columns)) * move + lines * 8);
    w.calls += in_slots * rows_in + out_slots * rows_out + lines * (in_slots + out_slots);
    out = line_cycles + rows_out / 2 * (row + 2 * d(width.tile) * move + lines * 8);
  }
  w.calls *= strip;
  // Sums of a point begin and end beside their products, some 10 cycles for each four tiles.
  if (!tiled && !single) w.calls += 0.2 * plane * out_slots * std::ceil(strip / 4);
  w.passes = strip * (in_slots * in + out_slots * out);
  w.points = strip * (in_slots + (single ? 0 : out_slots)) * plane;
  const double sums = tiled ? d(depth) * d(filters) : single ? 1 : d(depth) * out_slots;
  w.products = strip * plane * sums;
  w.weights_strip = plane * 8 * (tiled ? sums : sums * d(lanes));
  w.weights = w.weights_strip * w.parts;
  return w;
}

const FamilyInfo& fft_info() {
  static const FamilyInfo family = {
      .params = ParamsType::of<FftParams>,
      .variants = kVariants,
      .types = kTypeRows,
      .gpu_16_bits = true,
      .reference = convolution_reference<FftParams>,
      .footprint = fft_footprint,
      .blocking = fft_blocking,
      .schedules = schedules,
      .sample_forms = sample_forms,
      .samples = samples,
      .comparison = comparison,
      .cpu_schedule = &ScheduleType::of<FftSchedule>,
      .gpu_schedule = &ScheduleType::of<FftTileSchedule>,
  };
  return family;
}

}  // namespace sparkle
