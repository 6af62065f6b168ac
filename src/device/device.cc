#include "device/device.h"

namespace sparkle {

const MathUnit* Device::unit(std::string_view unit_name) const {
  for (const MathUnit& u : units)
    if (u.name == unit_name) return &u;
  return nullptr;
}

const MemoryLevel* Device::level(std::string_view level_name) const {
  for (const MemoryLevel& l : memory)
    if (l.name == level_name) return &l;
  return nullptr;
}

bool Device::denies(std::string_view family, std::string_view variant) const {
  if (denylist.empty()) return false;
  std::string wanted = " ";
  wanted.append(family).append("/").append(variant).append(" ");
  return (" " + denylist + " ").find(wanted) != std::string::npos;
}

double Device::pace(std::string_view family, std::string_view variant, std::string_view unit) const {
  for (const KernelPace& p : paces)
    if (p.unit == unit && p.name.size() == family.size() + 1 + variant.size() && p.name.starts_with(family) &&
        p.name.ends_with(variant))
      return p.ratio;
  return 1;
}

bool Device::is_software() const { return architecture == "llvmpipe"; }

double transfer_seconds(const Device& device, double bytes) {
  constexpr double kBytesPerSecond = 12e9, kHandingOver = 30e-6;
  const double rate = device.link_bytes_per_second > 0 ? device.link_bytes_per_second : kBytesPerSecond;
  return bytes / rate + (device.link_seconds > 0 ? device.link_seconds : kHandingOver);
}

bool same_machine(const Device& a, const Device& b) {
  return a.kind == b.kind && a.name == b.name && a.vendor == b.vendor && a.architecture == b.architecture;
}

std::string_view name_of(DeviceKind kind) {
  constexpr std::string_view names[] = {"cpu", "vulkan", "cuda"};
  return names[static_cast<int>(kind)];
}

std::string_view name_of(UnitKind kind) {
  constexpr std::string_view names[] = {"vector_fma", "dot_product", "matrix"};
  return names[static_cast<int>(kind)];
}

}  // namespace sparkle
