#include "run/open_backend.h"

#include "backends/cpu/roofs.h"
#include "backends/reference/reference_backend.h"
#include "base/thread_pool.h"
#include "device/estimate.h"
#include "device/probe_cpu.h"

namespace sparkle {

Result<OpenBackend> open_backend(const BackendOptions& o) {
  if (o.name == "reference") {
    OpenBackend open;
    open.backend = make_reference_backend();
    return open;
  }
  if (o.name.starts_with("vulkan") || o.name.starts_with("cuda"))
    return Error{Reason::device_unusable, "The device '" + o.name + "' has no backend in this version; use cpu."};
  if (o.name != "cpu" && o.name != "auto")
    return Error{Reason::bad_usage,
                 "There is no device '" + o.name + "'; use auto, cpu or reference, or FILE.json with 'sparkle explain'."};
  ProbeOptions probe;
  probe.threads = o.executor ? o.executor->width() : o.threads;
  Device device = probe_cpu(probe);
  std::shared_ptr<Executor> executor = o.executor;
  if (!executor) {
    ThreadPoolOptions pool;
    pool.threads = device.cores;
    pool.flush_denormals = true;
    executor = std::make_shared<ThreadPool>(pool);
  }
  std::optional<cpu::Calibration> calibration;
  if (o.roofs == Roofs::kept_or_estimated) {
    calibration = cpu::kept_roofs(device, *executor);
    if (!calibration) estimate_rates(device);
  } else {
    SPARKLE_TRY(measured, cpu::calibrate(device, *executor, {.force = o.roofs == Roofs::measured_again}));
    calibration = std::move(measured);
  }
  OpenBackend open;
  if (calibration) {
    open.roofs_file = calibration->path;
    open.roofs_measured_at = calibration->measured_at;
  }
  open.note = (o.name == "auto" ? "auto: cpu, " : "cpu, ") + device.thread_note;
  open.backend = cpu::make_cpu_backend(device, std::move(executor), o.allocator);
  return open;
}

}  // namespace sparkle
