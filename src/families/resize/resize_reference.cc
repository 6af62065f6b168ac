// The resize family: plain loops in double precision, and what it tells the planner.
#include <array>
#include <cstring>

#include "families/common.h"
#include "families/values/element.h"
#include "families/resize/resize_taps.h"
#include "families/windows/samples.h"
#include "families/loops/walk.h"

namespace sparkle {
namespace {

constexpr Variant kVariants[] = {
#include "families/resize/variants.inc"
};
constexpr TypeRow kTypeRows[] = {
    {"nearest", "Resize, Upsample", kComputed, "elements move as they are", "all"},
    {"linear, cubic", "Resize, Upsample", kNumbers,
     "f16 and bf16 converted to f32 before it, f64 and integers (rounded, saturating) by the variant plain"},
};

size_t type_form(const StageParams& params) { return get<ResizeParams>(params).mode != ResizeMode::nearest; }

constexpr int kMostTapAxes = 3;  // that the taps of the GPUs' kernels run over

void resize_reference(const StageParams& params, std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
  const ResizeParams& p = get<ResizeParams>(params);
  const TensorView &x = inputs[0], &y = outputs[0];
  const DType type = y.desc.dtype;
  const int rank = y.desc.shape.size();
  if (x.desc.shape.product() == 0) return;
  std::vector<ResizeTaps> taps;
  Dims counts;
  for (int i = 0; i < rank; ++i) {
    taps.push_back(resize_taps(p, i, x.desc.shape[i], y.desc.shape[i]));
    counts.push_back(taps.back().count);
  }
  for_each_index(y.desc.shape, [&](const Dims& at) {
    std::byte* to = element_at(y, at);
    for (int i = 0; i < rank; ++i) {
      const ResizeTaps& t = taps[static_cast<size_t>(i)];
      if (!t.outside.empty() && t.outside[static_cast<size_t>(at[i])]) return store_element(type, p.extrapolation, to);
    }
    double sum = 0;
    const std::byte* from = nullptr;
    for_each_index(counts, [&](const Dims& tap) {
      Dims where;
      double weight = 1;
      for (int i = 0; i < rank; ++i) {
        const ResizeTaps& t = taps[static_cast<size_t>(i)];
        const auto k = static_cast<size_t>(at[i] * t.count + tap[i]);
        where.push_back(t.index[k]);
        weight *= t.weight[k];
      }
      from = element_at(x, where);
      sum += weight * load_element(type, from);
    });
    if (counts.product() == 1) {
      std::memcpy(to, from, static_cast<size_t>(size_of(type)));
    } else {
      store_element(type, sum, to);
    }
  });
}

// Two operations per tap, axis after axis: the last axis at full size, the outer ones before it is stretched.
Footprint footprint(const Stage& stage, const Schedule&, const Device& device) {
  const ResizeParams& p = get<ResizeParams>(stage.params);
  double flops = 0;
  if (p.mode != ResizeMode::nearest)
    for (int i = 0; i < stage.outputs[0].shape.size(); ++i)
      if (stage.inputs[0].shape[i] != stage.outputs[0].shape[i])
        flops += 2 * static_cast<double>(resize_axis(p, i, stage.inputs[0].shape[i], stage.outputs[0].shape[i]).count) *
                 static_cast<double>(stage.outputs[0].elements());
  return streaming_footprint(stage, device, flops);
}

std::vector<Schedule> schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not) {
  const ResizeParams& p = get<ResizeParams>(stage.params);
  if (variant.name != "plain" && p.mode != ResizeMode::nearest && !stores_reals(variant, device, stage.outputs[0].dtype)) {
    why_not = Reason::type_not_served;
    return {};
  }
  if (variant.for_workgroups()) {
    int resized = 0;
    for (int i = 0; i < stage.outputs[0].shape.size(); ++i)
      resized += !resize_axis(p, i, stage.inputs[0].shape[i], stage.outputs[0].shape[i]).identity;
    if ((variant.name == "units") != (p.mode == ResizeMode::nearest) || (variant.name == "taps" && resized > kMostTapAxes)) {
      why_not = Reason::filter_not_served;
      return {};
    }
    return loop_schedules(stage, variant, device, why_not);
  }
  if (variant.name == "lines" && p.antialias) {
    why_not = Reason::filter_not_served;
    return {};
  }
  if (variant.name == "filter") {
    const TensorDesc &x = stage.inputs[0], &y = stage.outputs[0];
    int resized = 0;
    for (int i = 0; i < y.shape.size(); ++i) resized += !resize_axis(p, i, x.shape[i], y.shape[i]).identity;
    if (!p.antialias || resized > 1) why_not = Reason::filter_not_served;
    else if (!is_row_major(x.shape, x.layout) || !is_row_major(y.shape, y.layout)) why_not = Reason::layout_not_served;
    else return loop_schedules(stage, variant, device, why_not);
    return {};
  }
  return loop_schedules(stage, variant, device, why_not);
}

std::vector<SampleForm> sample_forms() {
  ResizeParams linear, nearest, smaller;
  linear.mode = smaller.mode = ResizeMode::linear, nearest.mode = ResizeMode::nearest;
  linear.scales = nearest.scales = {1, 1, 2, 0.5};
  smaller.scales = {1, 1, 1, 0.5}, smaller.antialias = true;
  const auto of = [](const ResizeParams& p, DType type) { return SampleForm{p, {type}, {type}}; };
  return {of(linear, DType::f32), of(nearest, DType::f32), of(nearest, DType::i64), of(smaller, DType::f32)};
}

// The same scales on small tensors, channels in whole vectors and not.
std::vector<Stage> samples(const SampleRequest& t) {
  const auto& p = get<ResizeParams>(t.params);
  std::vector<Stage> stages;
  for (const int64_t wide : {3, 8}) {
    Dims x, y;
    for (size_t i = 0; i < p.scales.size(); ++i) {
      x.push_back(p.scales[i] == 1 ? (i == 1 ? wide : 2) : 7);
      y.push_back(std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(x.back()) * std::min(p.scales[i], 16.0))));
    }
    if (x.size() > 1) stages.push_back({p, {described(t.inputs[0], x, true, 0)}, {described(t.inputs[0], y, true, 0)}});
  }
  return stages;
}

SampleRules comparison(const Stage&) { return {.in_native_type = true}; }

}  // namespace

const FamilyInfo& resize_info() {
  static const FamilyInfo family = {
      .params = ParamsType::of<ResizeParams>,
      .variants = kVariants,
      .types = kTypeRows,
      .type_form = type_form,
      .gpu_16_bits = true,
      .reference = resize_reference,
      .footprint = footprint,
      .schedules = schedules,
      .sample_forms = sample_forms,
      .samples = samples,
      .comparison = comparison,
  };
  return family;
}

}  // namespace sparkle
