#include "device/kept_rates.h"

#include <sys/stat.h>

#include <cstdio>
#include <filesystem>

#include "base/files/cache_folder.h"
#include "base/record.h"
#include "device/device_json.h"
#include "device/memory_curve.h"
#include "device/probe_cpu.h"

namespace sparkle {

namespace {

namespace fs = std::filesystem;

// Changes whenever the same machine would be measured differently.
constexpr char kMethod[] = " method 5";

// The device without all that is measured or may differ from one probe to the next.
Device identity(Device device) {
  device.clock_hz = device.launch_seconds = 0;
  device.calibrated = false;
  device.paces.clear();
  device.thread_note.clear();
  if (device.has_workgroups()) remove_caches(device);  // drivers tell of none
  for (MemoryLevel& level : device.memory) {
    level.bytes_per_second = level.total_bytes_per_second = level.copy_bytes_per_second = 0;
    if (&level == &device.memory.back()) level.bytes = 0;  // the kernel's own share of DRAM varies with its version
  }
  for (MathUnit& unit : device.units) unit.flops_per_second = unit.total_flops_per_second = 0;
  return device;
}

// When a file was written, which is when its rates were measured; 0 where that cannot be told.
std::time_t time_of(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 ? status.st_mtime : 0;
}

std::string path_of(const Device& bare, const std::string& how, const std::string& given) {
  const std::string folder = given.empty() ? cache_folder() : given;
  char name[40];
  const char* what = bare.has_workgroups() ? " with caches" : "";
  const std::string microcode = bare.has_workgroups() ? "" : " microcode " + cpu_microcode();
  const std::string key = device_to_json(bare) + " " + how + what + microcode + " version " SPARKLE_VERSION + kMethod;
  std::snprintf(name, sizeof name, "roofs-%016llx.json", static_cast<unsigned long long>(hash_text(key)));
  return folder.empty() ? std::string() : folder + "/" + name;
}

}  // namespace

std::optional<KeptRates> kept_rates(Device& device, const std::string& how, const std::string& folder) {
  const Device bare = identity(device);
  const std::string path = path_of(bare, how, folder);
  if (path.empty()) return std::nullopt;
  auto kept = load_device(path);
  if (!kept.ok() || !kept->calibrated || identity(*kept) != bare) return std::nullopt;
  kept->thread_note = device.thread_note;
  kept->memory.back().bytes = device.memory.back().bytes;
  device = std::move(*kept);
  return KeptRates{path, time_of(path)};
}

KeptRates keep_rates(const Device& device, const std::string& how, const std::string& folder) {
  const std::string path = path_of(identity(device), how, folder);
  const std::time_t now = std::time(nullptr);
  if (path.empty()) return {{}, now};
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  const bool kept = replace_file(path, device_to_json(device, "Measured by Sparkle " SPARKLE_VERSION " on this machine."));
  return {kept ? path : std::string(), now};
}

}  // namespace sparkle
