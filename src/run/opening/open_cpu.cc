// The backend "cpu": this machine's cores, their rates kept, measured or estimated.
#include "backends/cpu/cpu_backend.h"

#include "backends/cpu/roofs/roofs.h"
#include "device/estimate.h"
#include "device/probe_cpu.h"
#include "run/opening/openers.h"
#include "run/opening/force_unit.h"
#include "run/opening/kernel_paces.h"
#include "run/opening/open_backend.h"

namespace sparkle {

Result<OpenBackend> open_cpu(const BackendOptions& o) {
  ProbeOptions probe;
  probe.threads = o.executor ? o.executor->width() : o.threads;
  Device device = probe_cpu(probe);
  if (!o.unit.empty()) SPARKLE_CHECK(force_unit(device, o.unit));
  std::shared_ptr<Executor> executor = executor_of(o, device.cores);
  std::optional<cpu::Calibration> calibration;
  if (o.roofs == Roofs::kept_or_estimated) {
    calibration = cpu::kept_roofs(device, *executor);
    if (!calibration) estimate_rates(device);
  } else {
    SPARKLE_TRY(measured,
                cpu::calibrate(device, *executor, {.force = o.roofs == Roofs::measured_again, .more = measure_paces}));
    calibration = std::move(measured);
  }
  OpenBackend open;
  if (calibration) {
    open.roofs_file = calibration->path;
    open.roofs_measured_at = calibration->measured_at;
  }
  open.note = (o.name == "auto" ? "auto: cpu, " : "cpu, ") + device.thread_note;
  if (!o.unit.empty()) open.note += ", " + o.unit + " alone of its units";
  open.backend = cpu::make_cpu_backend(device, std::move(executor), o.allocator);
  return open;
}

}  // namespace sparkle
