// What the pool family tells the planner: names, variants, predicted work and traffic, schedules worth ranking.
#include "families/pool/pool.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "families/common.h"
#include "families/loops/grain.h"
#include "families/pool/pool_groups.h"
#include "families/pool/pool_reference.h"
#include "families/windows/taps.h"
#include "families/loops/chunk_move.h"
#include "families/windows/window_samples.h"

namespace sparkle {
namespace {

constexpr std::array<std::string_view, 3> kNames = {"max", "average", "lp"};

constexpr Variant kVariants[] = {
#include "families/pool/variants.inc"
};
constexpr TypeRow kTypeRows[] = {
    {"max", "MaxPool", kNumbers,
     "f16 and bf16 converted to f32 before it, 8-bit integers by the variant bytes, f64 and other integers by the variant "
     "plain",
     "f64, 8-bit integers"},
    {"average, lp", "AveragePool, LpPool, LRN", kFloats, kInF32, "f64 (but power means beyond the second)"},
};

size_t type_form(const StageParams& params) { return get<PoolParams>(params).kind != PoolKind::max; }

constexpr int64_t kMostPower = 1024;  // beyond, whole powers of numbers near one leave fp32
constexpr double kGroup = 64;         // threads of a workgroup on GPUs

// Elements worth a task on a CPU: 16 KB of the output.
double least_of_task(std::string_view variant) { return variant == "bytes" ? 4 * kLeastElements : kLeastElements; }

const PoolParams& params_of(const Stage& stage) { return get<PoolParams>(stage.params); }

Axis axis_of(const Stage& stage, size_t i) {
  const Window& w = params_of(stage).window;
  const FeatureMap x = feature_map(stage.inputs[0]), y = feature_map(stage.outputs[0]);
  const Triple in{x.d, x.h, x.w}, out{y.d, y.h, y.w};
  return {in[i], out[i], w.filter[i], w.stride[i], w.dilation[i], w.pad_begin[i]};
}

// GPUs: real numbers, four channels at once where they lie side by side; maxima of bytes; doubles one by one.
std::vector<Schedule> gpu_schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not) {
  const WhyNot refuse{why_not};
  const DType type = stage.outputs[0].dtype;
  const PoolParams& p = params_of(stage);
  const bool bytes = (type == DType::u8 || type == DType::i8) && variant.name == "naive" && p.kind == PoolKind::max &&
                     (device.unit("alu-i8") || device.unit("mma-i8"));  // CUDA's cards multiply bytes by mma.sync
  const bool doubles = type == DType::f64 && variant.name == "naive" && (p.kind != PoolKind::lp || p.p <= 2) &&
                       device.unit("alu-f64") != nullptr;
  if (stage.inputs[0].dtype != type || (!bytes && !doubles && !stores_reals(variant, device, type)))
    return refuse(Reason::type_not_served);
  if (p.kind == PoolKind::lp && (p.p < 1 || p.p > kMostPower)) return refuse(Reason::operator_not_served);
  if (variant.name == "vectors") {
    if (stage.outputs.size() > 1) return refuse(Reason::operator_not_served);  // positions of the maxima: naive only
    if (!channels_in_vec4(stage.inputs[0]) || !channels_in_vec4(stage.outputs[0])) return refuse(Reason::layout_not_served);
  }
  if (variant.name == "group") {
    if (stage.outputs.size() > 1) return refuse(Reason::operator_not_served);
    // A thread alone is done with a short window before others have joined theirs.
    constexpr int64_t kLeastTaps = 64;
    if (p.window.taps() < kLeastTaps) return refuse(Reason::filter_not_served);
  }
  return loop_schedules(stage, variant, device, why_not);
}

std::vector<Schedule> schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not) {
  const WhyNot refuse{why_not};
  if (variant.for_workgroups()) return gpu_schedules(stage, variant, device, why_not);
  if (variant.name != "plain") {
    const PoolParams& p = params_of(stage);
    const bool bytes = variant.name == "bytes";
    const auto supported = [&](DType type) { return bytes ? type == DType::u8 || type == DType::i8 : type == DType::f32; };
    if (!supported(stage.inputs[0].dtype) || stage.outputs[0].dtype != stage.inputs[0].dtype)
      return refuse(Reason::type_not_served);
    if (bytes && p.kind != PoolKind::max) return refuse(Reason::operator_not_served);
    const bool positions = variant.name == "positions";
    if ((stage.outputs.size() > 1) != positions) return refuse(Reason::operator_not_served);
    if (positions && feature_map(stage.inputs[0]).pixels() > INT32_MAX) return refuse(Reason::layout_not_served);
    if (p.kind == PoolKind::lp && p.p != 1 && p.p != 2) return refuse(Reason::operator_not_served);
    const bool planes = variant.name == "planes";
    for (const TensorDesc* operand : {&stage.inputs[0], &stage.outputs[0]})
      if (!(planes ? columns_innermost(*operand) : channels_innermost(*operand))) return refuse(Reason::layout_not_served);
    // Rows and columns one after the other pays for maxima over large windows that overlap.
    if (variant.name == "separable") {
      const Window& w = p.window;
      if (p.kind != PoolKind::max) return refuse(Reason::operator_not_served);
      const bool single = w.filter[0] == 1 && w.dilation[1] == 1 && w.dilation[2] == 1 && w.stride[1] == 1 && w.stride[2] == 1;
      if (!single || w.filter[1] * w.filter[2] < 9) return refuse(Reason::filter_not_served);
    }
  }
  std::vector<Schedule> result = loop_schedules(stage, variant, device, why_not);
  const TensorDesc& y = stage.outputs[0];
  cut_into(result, device, y.elements(),
           planned_tasks(static_cast<double>(y.elements()), least_of_task(variant.name), 8, device));
  return result;
}

// Comparisons per output along one axis when 8, 4 or 1 outputs share their common elements (pool_separable-inl.h).
double shared_steps(int64_t filter) {
  const double outputs = filter >= 8 ? 8 : filter >= 4 ? 4 : 1;
  return (static_cast<double>(filter) - outputs + 4 * (outputs - 1)) / outputs;
}

// Steps of vectors of columns: a row to begin with, each vector of the rows that are joined and of the outputs, with what it is
// loaded from and stored to; at strides two vectors make one. Measured on Zen 4: windows of 3x3 on 64x112x112 and 256x28x28.
double plane_steps(const Stage& stage, int64_t lanes) {
  constexpr double kRow = 16, kJoined = 2, kOutput = 4;
  const FeatureMap x = feature_map(stage.inputs[0]), y = feature_map(stage.outputs[0]);
  const Window& w = params_of(stage).window;
  const auto vectors = [&](int64_t columns) { return static_cast<double>((columns + lanes - 1) / lanes); };
  const double outputs = static_cast<double>(y.n * y.c), rows = outputs * static_cast<double>(y.d * y.h);
  const double joined = outputs * taps_inside(axis_of(stage, 0)) * taps_inside(axis_of(stage, 1));
  const double along = static_cast<double>(w.filter[2] * (w.stride[2] == 1 ? 1 : 2));
  return rows * (kRow + kJoined * vectors(x.w) + (along + kOutput) * vectors(y.w)) + joined * vectors(x.w);
}

Footprint footprint(const Stage& stage, const Schedule& schedule, const Device& device) {
  const PoolParams& p = params_of(stage);
  const FeatureMap x = feature_map(stage.inputs[0]), y = feature_map(stage.outputs[0]);
  const double channels = static_cast<double>(y.c);
  double inside = static_cast<double>(y.n);
  for (size_t i = 0; i < 3; ++i) inside *= taps_inside(axis_of(stage, i));

  Footprint f = streaming_footprint(stage, device, 0);
  f.nominal_flops = channels * static_cast<double>(y.n * y.pixels()) * static_cast<double>(p.window.taps());
  const MathUnit* unit = device.unit(unit_of(schedule));
  if (!unit) {
    f.executed_flops = channels * inside;
    f.parallel_items = 1;
    return f;
  }
  // Index arithmetic takes some four times as long as the step itself; four channels share it.
  if (device.has_workgroups()) {
    const bool vectors = variant_of(schedule) == "vectors";
    if (variant_of(schedule) == "group") {
      const bool vec4 = pool_in_vec4(stage);
      const double outputs = channels * static_cast<double>(y.n * y.pixels()) / (vec4 ? 4 : 1);
      f.executed_flops = channels * inside * (vec4 ? 8 : 20);  // two divisions more for each element
      f.parallel_items = std::max(1.0, outputs / static_cast<double>(pool_lanes(stage)));
      return f;
    }
    f.executed_flops = channels * inside * (vectors ? 4 : 10);
    f.parallel_items = std::max(1.0, channels * static_cast<double>(y.n * y.pixels()) / (vectors ? 4 * kGroup : kGroup));
    return f;
  }
  // A step takes the time of a multiply-add, which counts as two.
  const int64_t lanes = std::max(unit->n, 1);
  const double padded = 2 * static_cast<double>((y.c + lanes - 1) / lanes * lanes);
  if (variant_of(schedule) == "separable") {
    const double down =
        static_cast<double>(y.n * y.d * y.h) * static_cast<double>(x.w) * (shared_steps(p.window.filter[1]) + 1);
    const double along = static_cast<double>(y.n * y.d * y.h * y.w) * (shared_steps(p.window.filter[2]) + 1);
    f.executed_flops = padded * (down + along);
  } else if (variant_of(schedule) == "planes") {
    f.executed_flops = plane_steps(stage, lanes) * 2 * static_cast<double>(lanes);
  } else if (variant_of(schedule) == "bytes") {  // four times the lanes
    f.executed_flops = 2 * std::ceil(channels / static_cast<double>(4 * lanes)) * static_cast<double>(lanes) * inside;
  } else {  // where a maximum lies is chosen as the maximum is, beside two questions after NaN
    f.executed_flops = (variant_of(schedule) == "positions" ? 4 : 1) * padded * inside;
  }
  f.parallel_items = std::max(1.0, channels * static_cast<double>(y.n * y.pixels()) / least_of_task(variant_of(schedule)));
  return f;
}

std::vector<SampleForm> sample_forms() {
  PoolParams p, longer, plane, strided;
  p.window = longer.window = strided.window = small_window();
  longer.window.filter = {1, 9, 9}, longer.window.pad_begin = longer.window.pad_end = {0, 4, 4};
  plane.kind = PoolKind::average, plane.window.filter = {1, 20, 20};
  strided.window.stride = {1, 2, 1};
  const auto of = [](const PoolParams& params, DType type) { return SampleForm{params, {type}, {type}}; };
  std::vector<SampleForm> list{of(p, DType::f32), of(longer, DType::f32), of(plane, DType::f32), of(p, DType::u8)};
  for (const DType type : {DType::f32, DType::f16, DType::f64}) list.push_back({strided, {type}, {type, DType::i64}});
  return list;
}

// Positions of maxima are integers behind the maxima.
std::vector<Stage> samples(const SampleRequest& t) {
  const auto& p = get<PoolParams>(t.params);
  std::vector<Stage> stages{window_sample(p, p.window, nullptr, 1, true, 5, 1),
                            window_sample(p, p.window, nullptr, 1, true, 8, 0)};
  for (Stage& stage : stages) {
    stage.inputs[0].dtype = t.inputs[0];
    stage.outputs[0].dtype = t.outputs[0];
    if (t.outputs.size() > 1) stage.outputs.push_back(described(t.outputs[1], stage.outputs[0].shape, false, 1));
  }
  return stages;
}

}  // namespace

bool pool_in_vec4(const Stage& stage) { return channels_in_vec4(stage.inputs[0]) && channels_in_vec4(stage.outputs[0]); }

int64_t pool_lanes(const Stage& stage) {
  const bool vec4 = pool_in_vec4(stage);
  const FeatureMap x = feature_map(stage.inputs[0]);
  if (!vec4 && (x.c == 1 || x.channel_stride != 1)) return 1;
  // 128 bytes side by side, or as few as 32 where there are few outputs to begin with.
  constexpr int64_t kFew = 64;
  const int64_t width = vec4 ? 4 : 1, outputs = stage.outputs[0].elements() / width;
  int64_t lanes = 32 / width;
  while (lanes > 8 / width && outputs < kFew * lanes) lanes /= 2;
  return lanes;
}

std::string_view name_of(PoolKind kind) { return kNames[static_cast<size_t>(kind)]; }

bool parse_name(std::string_view text, PoolKind& kind) {
  const auto at = std::find(kNames.begin(), kNames.end(), text);
  if (at == kNames.end()) return false;
  kind = static_cast<PoolKind>(at - kNames.begin());
  return true;
}

const FamilyInfo& pool_info() {
  static const FamilyInfo family = {
      .params = ParamsType::of<PoolParams>,
      .variants = kVariants,
      .types = kTypeRows,
      .type_form = type_form,
      .gpu_16_bits = true,
      .reference = pool_reference,
      .footprint = footprint,
      .schedules = schedules,
      .sample_forms = sample_forms,
      .samples = samples,
  };
  return family;
}

}  // namespace sparkle
