// The copy family: plain loops, and what it tells the planner.
#include <cstring>

#include "families/common.h"
#include "families/walk.h"

namespace sparkle {
namespace {

constexpr Variant kVariants[] = {
#include "families/copy/variants.inc"
};

void copy_reference(const StageParams&, std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
  const TensorView &x = inputs[0], &y = outputs[0];
  const auto bytes = static_cast<size_t>(size_of(y.desc.dtype));
  for_each_index(y.desc.shape, [&](const Dims& at) { std::memcpy(element_at(y, at), element_at(x, at), bytes); });
}

Footprint footprint(const Stage& stage, const Schedule&, const Device& device) { return streaming_footprint(stage, device, 0); }

std::vector<Schedule> schedules(const Stage&, const Variant& variant, const Device& device, Reason& why_not) {
  return loop_schedules(variant, device, why_not);
}

}  // namespace

const FamilyInfo& copy_info() {
  static const FamilyInfo family = {"copy", kVariants, copy_reference, footprint, schedules};
  return family;
}

}  // namespace sparkle
