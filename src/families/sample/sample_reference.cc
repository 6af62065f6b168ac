// The sample family: plain loops in double precision, and what it tells the planner.
#include <cmath>

#include "families/common.h"
#include "families/values/element.h"
#include "families/loops/grain.h"
#include "families/sample/sample_taps.h"
#include "families/windows/samples.h"
#include "families/loops/walk.h"

namespace sparkle {
namespace {

constexpr Variant kVariants[] = {
#include "families/sample/variants.inc"
};
constexpr TypeRow kTypeRows[] = {
    {"", "GridSample", kFloats, kInF32},
};

template <class Real>
void sample_in(const StageParams& params, std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
  const auto& p = get<SampleParams>(params);
  const TensorView &x = inputs[0], &grid = inputs[1], &y = outputs[0];
  const int spatial = x.desc.shape.size() - 2;
  if (x.desc.shape.product() == 0) return;
  for_each_index(y.desc.shape, [&](const Dims& at) {
    Dims place{at[0]}, counts;
    for (int i = 0; i < spatial; ++i) place.push_back(at[2 + i]);
    place.push_back(0);
    std::array<SampleTapsIn<Real>, 3> taps;
    for (int i = 0; i < spatial; ++i) {
      place[spatial + 1] = spatial - 1 - i;
      const auto coordinate = static_cast<Real>(load_element(grid.desc.dtype, element_at(grid, place)));
      taps[static_cast<size_t>(i)] = sample_taps_in(p, coordinate, x.desc.shape[2 + i]);
      counts.push_back(taps[static_cast<size_t>(i)].count);
    }
    double sum = 0;
    for_each_index(counts, [&](const Dims& tap) {
      Dims from{at[0], at[1]};
      double weight = 1;
      for (int i = 0; i < spatial; ++i) {
        const auto& t = taps[static_cast<size_t>(i)];
        const auto k = static_cast<size_t>(tap[i]);
        if (t.index[k] < 0) return;
        from.push_back(t.index[k]);
        weight *= static_cast<double>(t.weight[k]);
      }
      sum += weight * load_element(x.desc.dtype, element_at(x, from));
    });
    store_element(y.desc.dtype, sum, element_at(y, at));
  });
}

void sample_reference(const StageParams& params, std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
  if (inputs[0].desc.dtype == DType::f64) return sample_in<double>(params, inputs, outputs);
  sample_in<float>(params, inputs, outputs);
}

// Two operations per tap and channel; the taps' places and weights are shared by the channels.
Footprint footprint(const Stage& stage, const Schedule&, const Device& device) {
  const auto mode = get<SampleParams>(stage.params).mode;
  const double per_axis = mode == SampleMode::nearest ? 1 : mode == SampleMode::linear ? 2 : 4;
  const double taps = std::pow(per_axis, stage.inputs[0].shape.size() - 2);
  return streaming_footprint(stage, device, 2 * taps * static_cast<double>(stage.outputs[0].elements()));
}

std::vector<Schedule> schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not) {
  if (variant.for_workgroups()) {
    if (!stores_reals(variant, device, stage)) return why_not = Reason::type_not_served, std::vector<Schedule>{};
  } else if (variant.name != "plain") {
    for (const TensorDesc& desc : {stage.inputs[0], stage.inputs[1], stage.outputs[0]})
      if (desc.dtype != DType::f32) return why_not = Reason::type_not_served, std::vector<Schedule>{};
    for (const TensorDesc& desc : {stage.inputs[0], stage.outputs[0]})
      if (desc.shape[1] > 1 && desc.layout.strides[1] != 1) return why_not = Reason::layout_not_served, std::vector<Schedule>{};
  }
  if (variant.name != "plain" && (stage.inputs[0].shape.size() < 3 || stage.inputs[0].shape.size() > 5))
    return why_not = Reason::layout_not_served, std::vector<Schedule>{};
  return loop_schedules(stage, variant, device, why_not, kLeastElements);
}

std::vector<SampleForm> sample_forms() {
  std::vector<SampleForm> list;
  for (const SampleMode mode : {SampleMode::nearest, SampleMode::linear, SampleMode::cubic})
    for (const SamplePadding padding : {SamplePadding::zeros, SamplePadding::border, SamplePadding::reflection})
      for (const DType type : {DType::f32, DType::f16})
        list.push_back({SampleParams{mode, padding, mode == SampleMode::linear}, {type, type}, {type}});
  return list;
}

// One to three spatial axes, channels or columns innermost.
std::vector<Stage> samples(const SampleRequest& t) {
  std::vector<Stage> stages;
  for (const int spatial : {1, 2, 3}) {
    Dims x{2, spatial == 2 ? 5 : 8}, grid{2}, y = x;
    for (int i = 0; i < spatial; ++i) x.push_back(4 + i), y.push_back(5 - i), grid.push_back(5 - i);
    grid.push_back(spatial);
    stages.push_back({t.params,
                      {described(t.inputs[0], x, spatial != 1, spatial % 2), described(t.inputs[1], grid, false, 1)},
                      {described(t.outputs[0], y, spatial != 1, spatial % 2)}});
  }
  return stages;
}

}  // namespace

const FamilyInfo& sample_info() {
  static const FamilyInfo family = {
      .params = ParamsType::of<SampleParams>,
      .variants = kVariants,
      .types = kTypeRows,
      .gpu_16_bits = true,
      .reference = sample_reference,
      .footprint = footprint,
      .schedules = schedules,
      .sample_forms = sample_forms,
      .samples = samples,
  };
  return family;
}

}  // namespace sparkle
