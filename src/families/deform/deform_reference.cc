// The deform family: plain loops in double precision, and what it tells the planner.
#include <algorithm>
#include <cmath>

#include "families/common.h"
#include "families/deform/deform_taps.h"
#include "families/values/element.h"
#include "families/windows/samples.h"
#include "families/loops/walk.h"

namespace sparkle {
namespace {

constexpr Variant kVariants[] = {
#include "families/deform/variants.inc"
};
constexpr TypeRow kTypeRows[] = {
    {"", "DeformConv", kFloats, kInF32},
};

double load(const TensorView& view, const Dims& at) { return load_element(view.desc.dtype, element_at(view, at)); }

template <class Real>
void deform_in(const StageParams& params, std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
  const auto& p = get<DeformParams>(params);
  const TensorView &x = inputs[0], &w = inputs[1], &offset = inputs[2], &y = outputs[0];
  const TensorView* bias = p.bias ? &inputs[3] : nullptr;
  const TensorView* mask = p.mask ? &inputs[3 + p.bias] : nullptr;
  const int64_t channels = x.desc.shape[1], inner = channels / p.groups, outer = y.desc.shape[1] / p.groups;
  const int64_t taps = p.filter[0] * p.filter[1];
  for_each_index(y.desc.shape, [&](const Dims& at) {
    const int64_t n = at[0], k = at[1], row = at[2], column = at[3];
    double sum = bias ? load(*bias, {k}) : 0;
    for (int64_t i = 0; i < inner; ++i) {
      const int64_t c = k / outer * inner + i, group = c / (channels / p.offset_groups);
      for (int64_t r = 0; r < p.filter[0]; ++r)
        for (int64_t s = 0; s < p.filter[1]; ++s) {
          const int64_t tap = group * taps + r * p.filter[1] + s;
          const auto h = static_cast<Real>(row * p.stride[0] + r * p.dilation[0] - p.pad_begin[0]) +
                         static_cast<Real>(load(offset, {n, 2 * tap, row, column}));
          const auto v = static_cast<Real>(column * p.stride[1] + s * p.dilation[1] - p.pad_begin[1]) +
                         static_cast<Real>(load(offset, {n, 2 * tap + 1, row, column}));
          const auto places = deform_taps_in(h, v, x.desc.shape[2], x.desc.shape[3]);
          double value = 0;
          for (size_t j = 0; j < static_cast<size_t>(places.count); ++j)
            value += static_cast<double>(places.weight[j]) * load(x, {n, c, places.h[j], places.w[j]});
          if (mask) value *= load(*mask, {n, tap, row, column});
          sum += value * load(w, {k, i, r, s});
        }
    }
    store_element(y.desc.dtype, sum, element_at(y, at));
  });
}

void deform_reference(const StageParams& params, std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
  if (inputs[0].desc.dtype == DType::f64) return deform_in<double>(params, inputs, outputs);
  deform_in<float>(params, inputs, outputs);
}

// The products of the convolution, and eight operations per sampled element.
Footprint footprint(const Stage& stage, const Schedule& schedule, const Device& device) {
  const auto& p = get<DeformParams>(stage.params);
  const auto d = [](int64_t value) { return static_cast<double>(value); };
  const Dims &x = stage.inputs[0].shape, &y = stage.outputs[0].shape;
  const double pixels = d(y[0]) * d(y[2]) * d(y[3]), taps = d(p.filter[0] * p.filter[1]);
  const double products = 2 * pixels * d(y[1]) * d(x[1] / p.groups) * taps, samples = 8 * pixels * d(x[1]) * taps;
  Footprint result = streaming_footprint(stage, device, products + samples);
  result.nominal_flops = products;
  if (variant_of(schedule) == "columns") {
    // Columns of 192 KB, or of the six pixels of a tile, for each of up to 64 tasks; packed filters come on top of that where
    // they are not constant.
    const double columns = d(x[1]) * taps, rows = std::clamp(std::floor(49152 / std::max(1.0, columns) / 6) * 6, 6.0, 48.0);
    const double blocks = std::clamp(std::ceil(pixels / rows), 1.0, 64.0);
    result.workspace_bytes = static_cast<int64_t>(4 * blocks * (rows * columns + 16)) + 64;
  }
  return result;
}

std::vector<Schedule> schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not) {
  if (variant.for_workgroups()) {
    if (!stores_reals(variant, device, stage)) return why_not = Reason::type_not_served, std::vector<Schedule>{};
  } else if (variant.name != "plain") {
    const auto is_f32 = [](const TensorDesc& desc) { return desc.dtype == DType::f32; };
    if (!std::all_of(stage.inputs.begin(), stage.inputs.end(), is_f32) || !is_f32(stage.outputs[0]))
      return why_not = Reason::type_not_served, std::vector<Schedule>{};
    for (const TensorDesc& desc : {stage.inputs[0], stage.outputs[0]})
      if (desc.shape[1] > 1 && desc.layout.strides[1] != 1) return why_not = Reason::layout_not_served, std::vector<Schedule>{};
  }
  std::vector<Schedule> found = loop_schedules(stage, variant, device, why_not);
  // A block of pixels, which kernels do not cut, is worth a task.
  cut_into(found, device, stage.outputs[0].elements(), device.cores > 1 ? 4 * device.cores : 1);
  return found;
}

std::vector<SampleForm> sample_forms() {
  constexpr DType kF = DType::f32;
  DeformParams p, full;
  full.filter = {3, 3}, full.pad_begin = {1, 1}, full.groups = full.offset_groups = 2, full.bias = full.mask = true;
  return {{p, {kF, kF, kF}, {kF}}, {full, {kF, kF, kF, kF, kF}, {kF}}, {full, std::vector<DType>(5, DType::f16), {DType::f16}}};
}

// The same filter on few channels: two of each group for each group of offsets.
std::vector<Stage> samples(const SampleRequest& t) {
  auto p = get<DeformParams>(t.params);
  for (size_t i = 0; i < 2; ++i) p.filter[i] = std::min<int64_t>(p.filter[i], 5);
  p.groups = std::min<int64_t>(p.groups, 2), p.offset_groups = std::min<int64_t>(p.offset_groups, 2);
  const DType type = t.inputs[0];
  const int64_t taps = p.filter[0] * p.filter[1];
  std::vector<Stage> stages;
  for (const int64_t wide : {2, 70}) {
    const bool last = wide == 2;
    const auto desc = [&](const Dims& shape) { return described(type, shape, last, last); };
    Stage stage;
    stage.params = p;
    stage.inputs = {desc({2, 2 * p.groups * p.offset_groups, 6, 7}),
                    desc({p.groups * wide, 2 * p.offset_groups, p.filter[0], p.filter[1]}),
                    desc({2, p.offset_groups * taps * 2, 5, 4})};
    if (p.bias) stage.inputs.push_back(desc({p.groups * wide}));
    if (p.mask) stage.inputs.push_back(desc({2, p.offset_groups * taps, 5, 4}));
    stage.outputs = {desc({2, p.groups * wide, 5, 4})};
    stages.push_back(stage);
  }
  return stages;
}

}  // namespace

template <class Real>
DeformTapsIn<Real> deform_taps_in(Real h, Real w, int64_t height, int64_t width) {
  DeformTapsIn<Real> taps;
  // Also false for what is no number.
  if (!(h > -1 && w > -1 && h < static_cast<Real>(height) && w < static_cast<Real>(width))) return taps;
  const Real floor_h = std::floor(h), floor_w = std::floor(w), down = h - floor_h, right = w - floor_w;
  const auto h0 = static_cast<int64_t>(floor_h), w0 = static_cast<int64_t>(floor_w);
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t j = 0; j < 2; ++j) {
      if (h0 + i < 0 || h0 + i >= height || w0 + j < 0 || w0 + j >= width) continue;
      const auto at = static_cast<size_t>(taps.count++);
      taps.h[at] = h0 + i, taps.w[at] = w0 + j;
      taps.weight[at] = (i ? down : 1 - down) * (j ? right : 1 - right);
    }
  return taps;
}
template DeformTapsIn<float> deform_taps_in(float, float, int64_t, int64_t);
template DeformTapsIn<double> deform_taps_in(double, double, int64_t, int64_t);

DeformTaps deform_taps(float h, float w, int64_t height, int64_t width) {
  const auto taps = deform_taps_in(h, w, height, width);
  return {taps.h, taps.w, taps.weight, taps.count};
}

const FamilyInfo& deform_info() {
  static const FamilyInfo family = {
      .params = ParamsType::of<DeformParams>,
      .variants = kVariants,
      .types = kTypeRows,
      .gpu_16_bits = true,
      .reference = deform_reference,
      .footprint = footprint,
      .schedules = schedules,
      .sample_forms = sample_forms,
      .samples = samples,
  };
  return family;
}

}  // namespace sparkle
