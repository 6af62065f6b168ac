// The rotary family: plain loops in double precision, and what it tells the planner.
#include <algorithm>

#include "families/common.h"
#include "families/values/element.h"
#include "families/loops/grain.h"
#include "families/rotary/rotary.h"
#include "families/windows/samples.h"
#include "families/loops/walk.h"

namespace sparkle {
namespace {

constexpr Variant kVariants[] = {
#include "families/rotary/variants.inc"
};
constexpr TypeRow kTypeRows[] = {
    {"", "RotaryEmbedding", kFloats, kInF32},
};

void rotary_reference(const StageParams& params, std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
  const auto& p = get<RotaryParams>(params);
  const TensorView &x = inputs[0], &cosine = inputs[1], &sine = inputs[2], &y = outputs[0];
  const int64_t half = cosine.desc.shape.back(), width = x.desc.shape.back();
  Dims rows = x.desc.shape;
  rows.erase(rows.size() - 1);
  for_each_index(rows, [&](const Dims& row) {
    const auto at = [&](int64_t i) {
      Dims place = row;
      place.push_back(i);
      return place;
    };
    const auto load = [&](const TensorView& v, int64_t i) { return load_element(v.desc.dtype, element_at(v, at(i))); };
    const auto store = [&](int64_t i, double value) { store_element(y.desc.dtype, value, element_at(y, at(i))); };
    for (int64_t i = 0; i < half; ++i) {
      const int64_t first = p.interleaved ? 2 * i : i, second = p.interleaved ? 2 * i + 1 : i + half;
      const double a = load(x, first), b = load(x, second), c = load(cosine, i), s = load(sine, i);
      store(first, c * a - s * b);
      store(second, s * a + c * b);
    }
    for (int64_t i = 2 * half; i < width; ++i) store(i, load(x, i));
  });
}

Footprint footprint(const Stage& stage, const Schedule&, const Device& device) {
  return streaming_footprint(stage, device, 3 * static_cast<double>(stage.outputs[0].elements()));
}

std::vector<Schedule> schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not) {
  if (variant.name == "rows_gpu" && !stores_reals(variant, device, stage)) {
    why_not = Reason::type_not_served;
    return {};
  }
  if (variant.name == "rows") {
    const auto supports = [&](const TensorDesc& desc) {
      if (desc.dtype != DType::f32) why_not = Reason::type_not_served;
      else if (desc.shape.back() > 1 && desc.layout.strides.back() != 1) why_not = Reason::layout_not_served;
      return why_not == Reason::none;
    };
    if (!std::all_of(stage.inputs.begin(), stage.inputs.end(), supports) || !supports(stage.outputs[0])) return {};
  }
  return loop_schedules(stage, variant, device, why_not, kLeastElements);
}

std::vector<SampleForm> sample_forms() {
  const auto of = [](bool interleaved, DType type) {
    return SampleForm{RotaryParams{interleaved}, {type, type, type}, {type}};
  };
  return {of(true, DType::f32), of(false, DType::f32), of(true, DType::f16)};
}

std::vector<Stage> samples(const SampleRequest& t) {
  if (!of_one_real(t)) return {};
  std::vector<Stage> stages;
  for (const Dims& shape : {Dims{2, 9, 37}, Dims{2, 3, 64}}) {
    const TensorDesc x = described(DType::f32, shape, false, shape[2] % 2);
    const TensorDesc angle = described(DType::f32, {2, shape[1], 16}, false, 0);
    stages.push_back(with_types({t.params, {x, angle, angle}, {x}}, t));
  }
  return stages;
}

}  // namespace

const FamilyInfo& rotary_info() {
  static const FamilyInfo family = {
      .params = ParamsType::of<RotaryParams>,
      .variants = kVariants,
      .types = kTypeRows,
      .gpu_16_bits = true,
      .reference = rotary_reference,
      .footprint = footprint,
      .schedules = schedules,
      .sample_forms = sample_forms,
      .samples = samples,
  };
  return family;
}

}  // namespace sparkle
