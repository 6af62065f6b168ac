// The softmax family: plain loops in double precision, and what it tells the planner.
#include "families/softmax/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "families/common.h"
#include "families/values/element.h"
#include "families/loops/grain.h"
#include "families/loops/row_groups.h"
#include "families/windows/samples.h"
#include "families/loops/walk.h"

namespace sparkle {
namespace {

constexpr Variant kVariants[] = {
#include "families/softmax/variants.inc"
};
constexpr TypeRow kTypeRows[] = {
    {"", "Softmax, LogSoftmax", kFloats, kInF32, "f64"},
};

void softmax_reference(const StageParams& params, std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
  const SoftmaxParams& p = get<SoftmaxParams>(params);
  const TensorView &x = inputs[0], &y = outputs[0];
  Dims outer = x.desc.shape, inner = Dims::filled(outer.size(), 1);
  for (int i = p.first_axis; i <= p.last_axis; ++i) std::swap(outer[i], inner[i]);
  for_each_index(outer, [&](const Dims& row) {
    const auto place = [&](const Dims& at) {
      Dims sum = row;
      for (int i = 0; i < sum.size(); ++i) sum[i] += at[i];
      return sum;
    };
    const auto value = [&](const Dims& at) { return load_element(x.desc.dtype, element_at(x, place(at))); };
    double largest = -std::numeric_limits<double>::infinity(), total = 0;
    for_each_index(inner, [&](const Dims& at) { largest = std::max(largest, value(at)); });
    for_each_index(inner, [&](const Dims& at) { total += std::exp(value(at) - largest); });
    for_each_index(inner, [&](const Dims& at) {
      const double shifted = value(at) - largest;
      const double result = p.logarithm ? shifted - std::log(total) : std::exp(shifted) / total;
      store_element(y.desc.dtype, result, element_at(y, place(at)));
    });
  });
}

RowGroups groups_of(const Stage& stage, std::string_view variant) {
  const auto& p = get<SoftmaxParams>(stage.params);
  uint32_t within = 0;
  for (int axis = p.first_axis; axis <= p.last_axis; ++axis) within |= 1u << axis;
  return row_groups(stage.inputs[0], within, variant == "parts_gpu");
}

// Maximum, exponential (about 20 operations), sum and scale.
Footprint footprint(const Stage& stage, const Schedule& schedule, const Device& device) {
  Footprint f = streaming_footprint(stage, device, 24 * static_cast<double>(stage.outputs[0].elements()));
  if (device.has_workgroups()) {
    const RowGroups r = groups_of(stage, variant_of(schedule));
    f.parallel_items = std::max(1.0, static_cast<double>(r.groups * r.parts));
    if (r.parts > 1) f.workspace_bytes = 8 * r.rows * r.parts;
  }
  return f;
}

std::vector<Schedule> schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not) {
  const bool doubles = stage.inputs[0].dtype == DType::f64 && stage.outputs[0].dtype == DType::f64 &&
                       variant.name == "rows_gpu" && device.has_workgroups() && device.unit("alu-f64");
  if (variant.name != "plain" && !doubles && !stores_reals(variant, device, stage)) {
    why_not = Reason::type_not_served;
    return {};
  }
  if (variant.name == "parts_gpu") {
    // A second dispatch costs more than short rows, or rows that fill the device as they are, can give back.
    constexpr int64_t kLeastPerThread = 64, kLeastParts = 4;
    const RowGroups r = groups_of(stage, variant.name);
    if (r.parts < kLeastParts || r.elements < kLeastPerThread * r.depth) {
      why_not = Reason::costlier;
      return {};
    }
  }
  return loop_schedules(stage, variant, device, why_not, kLeastElements);
}

std::vector<SampleForm> sample_forms() {
  std::vector<SampleForm> list;
  for (const DType type : {DType::f32, DType::f64})
    for (const bool logarithm : {false, true}) list.push_back({SoftmaxParams{1, 1, logarithm}, {type}, {type}});
  return list;
}

std::vector<Stage> samples(const SampleRequest& t) {
  if (!of_one_real(t)) return {};
  const bool logarithm = get<SoftmaxParams>(t.params).logarithm;
  if (variant_of(t.schedule) == "parts_gpu") {
    const TensorDesc rows = described(DType::f32, {2, 8200}, false, 1);
    return {with_types({SoftmaxParams{1, 1, logarithm}, {rows}, {rows}}, t)};
  }
  return {with_types(rows_sample(SoftmaxParams{2, 2, logarithm}, 1, {3, 5, 37}), t),
          with_types(rows_sample(SoftmaxParams{0, 1, logarithm}, 1, {3, 5, 37}), t)};
}

}  // namespace

const FamilyInfo& softmax_info() {
  static const FamilyInfo family = {
      .params = ParamsType::of<SoftmaxParams>,
      .variants = kVariants,
      .types = kTypeRows,
      .gpu_16_bits = true,
      .reference = softmax_reference,
      .footprint = footprint,
      .schedules = schedules,
      .sample_forms = sample_forms,
      .samples = samples,
  };
  return family;
}

}  // namespace sparkle
