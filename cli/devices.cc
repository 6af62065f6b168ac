// sparkle devices: what is here, with measured roofs.
#include <cstdio>

#include "command.h"
#include "device/device_json.h"

namespace sparkle::cli {
namespace {

std::string rate(double per_second, const char* unit) {
  if (per_second <= 0) return "-";
  char text[40];
  std::snprintf(text, sizeof text, "%.1f G%s/s", per_second * 1e-9, unit);
  return text;
}

void print(const Device& d, const std::string& note) {
  std::printf("%s  %s\n", std::string(name_of(d.kind)).c_str(), d.name.c_str());
  std::printf("  architecture  %s%s%s\n", d.architecture.c_str(), d.vendor.empty() ? "" : ", ", d.vendor.c_str());
  std::printf("  cores         %s\n", d.thread_note.empty() ? std::to_string(d.cores).c_str() : d.thread_note.c_str());
  if (!note.empty()) std::printf("  chosen        %s\n", note.c_str());
  std::printf("  rates         %s\n", d.calibrated ? "measured on this machine" : "from data sheets, not calibrated");
  std::printf("  %-16s %12s %8s %16s %16s\n", "memory", "size", "shared", "one core", "all cores");
  for (const MemoryLevel& l : d.memory)
    std::printf("  %-16s %12s %8d %16s %16s\n", l.name.c_str(), l.bytes > 0 ? format_bytes(l.bytes).c_str() : "-", l.shared_by,
                rate(l.bytes_per_second, "B").c_str(), rate(l.total_bytes_per_second, "B").c_str());
  std::printf("  %-16s %12s %8s %16s %16s\n", "math unit", "m x n x k", "types", "one core", "all cores");
  for (const MathUnit& u : d.units) {
    const std::string shape = std::to_string(u.m) + "x" + std::to_string(u.n) + "x" + std::to_string(u.k);
    std::printf("  %-16s %12s %8s %16s %16s%s\n", u.name.c_str(), shape.c_str(), std::string(name_of(u.input)).c_str(),
                rate(u.flops_per_second, "FLOP").c_str(), rate(u.flops_per_second * d.cores, "FLOP").c_str(),
                u.kind == UnitKind::vector_fma ? "" : "  no kernel yet");
  }
  if (d.launch_seconds > 0) std::printf("  one step costs at least %.2f us\n", d.launch_seconds * 1e6);
}

int devices(const CommonOptions& common) {
  auto described = describe_device(common);
  if (!described.ok()) return fail(described.error());
  if (common.json) {
    std::printf("%s\n", device_to_json(*described).c_str());
    return kDone;
  }
  print(*described, common.device == "auto" ? "auto means cpu" : "");
  if (common.device == "auto")
    std::printf("vulkan  none: this version has no Vulkan backend\ncuda    none: this version has no CUDA backend\n");
  return kDone;
}

}  // namespace

void add_devices(CLI::App& app, Chosen& chosen) {
  auto* command =
      app.add_subcommand("devices", "Describe this machine (or FILE.json): caches, math units, measured peak and bandwidth");
  auto options = std::make_shared<CommonOptions>();
  add_common(*command, *options);
  command->callback([&chosen, options] { chosen = [options] { return devices(*options); }; });
}

}  // namespace sparkle::cli
