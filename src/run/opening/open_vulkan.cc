// The backend "vulkan": which device, its rates, and the caller's own device; or why a build has none.
#include "run/opening/open_backend.h"

#ifdef SPARKLE_WITH_VULKAN

#include "backends/vulkan/vulkan_backend.h"
#include "device/kept_rates.h"
#include "device/probe_cpu.h"
#include "run/opening/openers.h"
#include "run/opening/lent_vulkan.h"

namespace sparkle {
namespace {

struct OpenVulkan {
  std::shared_ptr<vulkan::VulkanBackend> backend;
  std::string name;  // "vulkan:0"
};

// "vulkan": the first device that can be used; "vulkan:I": the I-th.
// `sandbox`: this process may end by what a kernel does to the driver.
Result<OpenVulkan> vulkan_backend(const BackendOptions& o, bool sandbox = false) {
  SPARKLE_TRY(number, number_in(o.name));
  SPARKLE_TRY(instance, vulkan::Instance::open());
  const auto& devices = instance->devices();
  size_t index = devices.size();
  if (!number) {
    for (size_t i = 0; i < devices.size() && index == devices.size(); ++i)
      if (devices[i].unusable.empty()) index = i;
    if (index == devices.size())
      return Error{Reason::device_unusable, "No Vulkan device here can be used: '" + devices[0].name +
                                                "': " + devices[0].unusable + "; use --device cpu."};
  } else {
    index = *number;
    if (index >= devices.size())
      return Error{Reason::device_unusable, "There is no Vulkan device '" + o.name + "'; 'sparkle devices' lists " +
                                                std::to_string(devices.size()) + "."};
  }
  const int threads = probe_cpu({.threads = o.executor ? o.executor->width() : o.threads}).cores;
  OpenVulkan open;
  open.name = "vulkan:" + std::to_string(index);
  vulkan::ContextOptions options;
  options.sandbox = sandbox;
  if (o.try_elsewhere)
    options.try_elsewhere = [elsewhere = o.try_elsewhere, name = open.name](const std::string& lines) {
      elsewhere(name, lines);
    };
  SPARKLE_TRY(backend, vulkan::make_vulkan_backend(instance, index, options, executor_of(o, threads)));
  open.backend = std::move(backend);
  return open;
}

Result<OpenBackend> with_rates(const OpenVulkan& opened, const BackendOptions& o) {
  const auto& backend = opened.backend;
  OpenBackend open;
  Device device = backend->device();
  // Software devices run on cores that something else is using, and compile what measures them for half a second: only when
  // asked. Drivers without a clock leave the rates unknown.
  const bool software = vulkan::is_software(device);
  auto kept = o.roofs == Roofs::measured_again ? std::nullopt : kept_rates(device, "vulkan");
  if (kept) {
    backend->set_rates(device);
  } else if (o.roofs != Roofs::kept_or_estimated || !software) {
    const Status measured = backend->calibrate();
    if (measured.ok()) kept = keep_rates(backend->device(), "vulkan");
    else if (o.roofs == Roofs::measured_again) return measured.error();
    else open.tried.push_back("rates stay unknown: " + measured.error().message);
  }
  if (kept) open.roofs_file = kept->path, open.roofs_measured_at = kept->measured_at;
  open.note = opened.name + ", " + device.name + ", " + device.driver;
  for (const std::string& speed : backend->speeds()) open.tried.push_back(speed);
  for (const std::string& finding : backend->findings()) open.tried.push_back("banned " + finding);
  for (const std::string& line : open.tried) open.note += "; " + line;
  open.backend = backend;
  return open;
}

}  // namespace

Result<OpenBackend> open_vulkan(const BackendOptions& o) {
  SPARKLE_TRY(opened, vulkan_backend(o));
  return with_rates(opened, o);
}

Result<OpenBackend> open_lent_vulkan(const LentVulkan& lent, const BackendOptions& o) {
  const auto& made_with = *static_cast<const VkDeviceCreateInfo*>(lent.device_create_info);
  SPARKLE_TRY(instance, vulkan::Instance::lent(static_cast<VkInstance>(lent.instance),
                                               static_cast<VkPhysicalDevice>(lent.physical_device), made_with));
  vulkan::ContextOptions options;
  options.lent = {static_cast<VkDevice>(lent.device),
                  static_cast<VkQueue>(lent.queue),
                  lent.queue_family,
                  &made_with,
                  lent.lock_queue,
                  lent.unlock_queue,
                  lent.user};
  const int threads = probe_cpu({.threads = o.executor ? o.executor->width() : o.threads}).cores;
  OpenVulkan open;
  open.name = "the caller's Vulkan device";
  SPARKLE_TRY(backend, vulkan::make_vulkan_backend(instance, 0, options, executor_of(o, threads)));
  open.backend = std::move(backend);
  return with_rates(open, o);
}

Status try_vulkan_kernels(const BackendOptions& options, const std::string& lines) {
  SPARKLE_TRY(opened, vulkan_backend(options, true));
  return opened.backend->try_lines(lines);
}

std::vector<std::string> vulkan_devices() {
  const auto instance = vulkan::Instance::open();
  if (!instance.ok()) return {"vulkan    none: " + instance.error().message};
  std::vector<std::string> lines;
  for (size_t i = 0; i < (*instance)->devices().size(); ++i) {
    const vulkan::PhysicalDevice& d = (*instance)->devices()[i];
    lines.push_back("vulkan:" + std::to_string(i) + "  " + d.name + (d.driver.empty() ? "" : ", " + d.driver) +
                    (d.unusable.empty() ? "" : "; cannot be used: " + d.unusable));
  }
  return lines;
}

}  // namespace sparkle

#else

namespace sparkle {

Result<OpenBackend> open_vulkan(const BackendOptions&) {
  return Error{
      Reason::device_unusable,
      "This build of Sparkle has no Vulkan backend; build it where volk and glslang are installed, or use --device cpu."};
}

Status try_vulkan_kernels(const BackendOptions&, const std::string&) {
  return Error{Reason::device_unusable, "This build of Sparkle has no Vulkan backend."};
}

std::vector<std::string> vulkan_devices() { return {"vulkan    none: this build of Sparkle has no Vulkan backend"}; }

}  // namespace sparkle

#endif
