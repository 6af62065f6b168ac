#include "run/opening/force_unit.h"

#include <algorithm>

#include "families/common.h"

namespace sparkle {
namespace {

struct UnitSet {
  std::string_view unit;
  std::string_view kept[3];  // in the order of Device::units' own; absent ones are no matter
};
constexpr UnitSet kLevels[] = {
    {"avx512", {"avx512", "avx2-int16", ""}},
    {"avx512-vnni", {"avx512", "avx512-vnni", ""}},
    {"avx2", {"avx2", "avx2-int16", ""}},
    {"avx-vnni", {"avx2", "avx-vnni", ""}},  // depthwise layers too
    {"avx2-int16", {"avx2", "avx2-int16", ""}},
    {"neon", {"neon", "", ""}},
    {"neon-dot", {"neon", "neon-dot", ""}},
    {"sve", {"sve", "neon", ""}},
    {"amx-int8", {"avx512", "avx512-vnni", "amx-int8"}},
    {"amx-bf16", {"avx512", "avx2-int16", "amx-bf16"}},
};

const UnitSet* level_of(std::string_view unit) {
  const auto* at = std::find_if(std::begin(kLevels), std::end(kLevels), [&](const UnitSet& l) { return l.unit == unit; });
  return at == std::end(kLevels) ? nullptr : at;
}

}  // namespace

Status force_unit(Device& device, const std::string& unit) {
  if (device.has_workgroups() || device.units.empty())
    return Error{Reason::device_unusable, "--unit picks among the vector units of a CPU; '" + device.name + "' has none."};
  const UnitSet* level = level_of(unit);
  if (!level || !device.unit(unit)) {
    std::string present;
    for (const MathUnit& u : device.units)
      if (level_of(u.name) && has_kernels(device, u)) present += (present.empty() ? "" : ", ") + u.name;
    return Error{Reason::bad_usage, "'" + device.name + "' has no unit '" + unit +
                                        "' that Sparkle has kernels for; give one of " + (present.empty() ? "none" : present) +
                                        "."};
  }
  std::erase_if(device.units, [&](const MathUnit& u) {
    return std::find(std::begin(level->kept), std::end(level->kept), u.name) == std::end(level->kept);
  });
  return ok();
}

}  // namespace sparkle
