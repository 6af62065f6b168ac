#include "run/open_backend.h"

#include "backends/cpu/roofs.h"
#include "backends/reference/reference_backend.h"
#include "base/thread_pool.h"
#include "device/probe_cpu.h"

namespace sparkle {

Result<OpenBackend> open_backend(const BackendOptions& o) {
  if (o.name == "reference") return OpenBackend{make_reference_backend(), "reference"};
  if (o.name.starts_with("vulkan") || o.name.starts_with("cuda"))
    return Error{Reason::device_unusable, "The device '" + o.name + "' has no backend in this version; use cpu."};
  if (o.name != "cpu" && o.name != "auto")
    return Error{Reason::bad_usage, "There is no device '" + o.name + "'; use auto, cpu or reference."};
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
  if (o.calibrate) SPARKLE_CHECK(cpu::calibrate(device, *executor));
  OpenBackend open;
  open.note = (o.name == "auto" ? "auto: cpu, " : "cpu, ") + device.thread_note;
  open.backend = cpu::make_cpu_backend(device, std::move(executor), o.allocator);
  return open;
}

}  // namespace sparkle
