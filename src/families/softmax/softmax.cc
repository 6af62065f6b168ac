// The softmax family: plain loops in double precision, and what it tells the planner.
#include "families/softmax/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "families/common.h"
#include "families/element.h"
#include "families/walk.h"

namespace sparkle {
namespace {

constexpr Variant kVariants[] = {
#include "families/softmax/variants.inc"
};

void softmax_reference(const StageParams& params, std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
  const SoftmaxParams& p = std::get<SoftmaxParams>(params);
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

// Maximum, exponential (about 20 operations), sum and scale.
Footprint footprint(const Stage& stage, const Schedule&, const Device& device) {
  return streaming_footprint(stage, device, 24 * static_cast<double>(stage.outputs[0].elements()));
}

std::vector<Schedule> schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not) {
  if (variant.name != "plain" && !stores_reals(variant, device, stage)) {
    why_not = Reason::type_not_served;
    return {};
  }
  return loop_schedules(variant, device, why_not);
}

}  // namespace

const FamilyInfo& softmax_info() {
  static const FamilyInfo family = {"softmax", kVariants, softmax_reference, footprint, schedules};
  return family;
}

}  // namespace sparkle
