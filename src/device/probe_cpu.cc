#include "device/probe_cpu.h"

#include "base/system/cpu_count.h"

namespace sparkle {

Device probe_cpu(const ProbeOptions& options) {
  Device device;
  device.kind = DeviceKind::cpu;
  describe_cpu(device, options.root);
  ThreadCount count = usable_threads(options.threads);
  device.cores = count.threads;
  device.thread_note = std::move(count.note);
  device.memory = cpu_memory(options.root);
  device.units = cpu_units();
  return device;
}

}  // namespace sparkle
