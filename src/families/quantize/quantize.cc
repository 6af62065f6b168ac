// What the quantize family tells the planner, and its scalar definitions.
#include "families/quantize/quantize.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "families/common.h"
#include "families/quantize/quantize_reference.h"

namespace sparkle {
namespace {

constexpr std::array<std::string_view, 6> kKinds = {"quantize", "dequantize", "dynamic", "add", "average", "factor"};

constexpr Variant kVariants[] = {
#define VARIANT(name, device, unit, rows, vectors, registers, note) \
  {name, DeviceKind::device, UnitKind::unit, rows, vectors, registers, note},
#include "families/quantize/variants.inc"
#undef VARIANT
};

Footprint footprint(const Stage& stage, const Schedule&, const Device& device) {
  return streaming_footprint(stage, device, 2 * static_cast<double>(stage.inputs[0].elements()));
}

std::vector<Schedule> schedules(const Stage&, const Variant& variant, const Device& device, Reason& why_not) {
  return loop_schedules(variant, device, why_not);
}

}  // namespace

std::string_view name_of(QuantizeKind kind) { return kKinds[static_cast<size_t>(kind)]; }
bool parse_name(std::string_view text, QuantizeKind& kind) {
  const auto at = std::find(kKinds.begin(), kKinds.end(), text);
  if (at == kKinds.end()) return false;
  kind = static_cast<QuantizeKind>(at - kKinds.begin());
  return true;
}

IntegerRange output_range(DType type, const QuantizeParams& params) {
  IntegerRange range = range_of(type);
  if (params.clip) {
    range.low = std::clamp(params.low, range.low, range.high);
    range.high = std::clamp(params.high, range.low, range.high);
  }
  return range;
}

DynamicScale dynamic_scale(float least, float most) {
  least = std::min(least, 0.0f), most = std::max(most, 0.0f);
  DynamicScale result;
  result.scale = (most - least) / 255.0f;
  if (!(result.scale > 0)) return {1, 0};  // nothing but zeros: any scale is right
  result.zero = static_cast<uint8_t>(std::nearbyint(std::clamp(-least / result.scale, 0.0f, 255.0f)));
  return result;
}

int32_t quantized(float x, float scale, int32_t zero, const IntegerRange& range) {
  const float low = static_cast<float>(range.low - zero), high = static_cast<float>(range.high - zero);
  const float value = x / scale;
  if (std::isnan(value)) return static_cast<int32_t>(std::clamp<int64_t>(zero, range.low, range.high));
  return static_cast<int32_t>(std::nearbyint(std::min(std::max(value, low), high))) + zero;
}

const FamilyInfo& quantize_info() {
  static const FamilyInfo family = {"quantize", kVariants, quantize_reference, footprint, schedules};
  return family;
}

}  // namespace sparkle
