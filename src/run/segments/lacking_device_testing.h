// A device that lacks the kernels of families that a test names: this machine's CPU behind memory that the host cannot reach,
// its work under way on a thread of its own.
#pragma once

#include "backends/cpu/cpu_backend.h"
#include "base/system/thread_pool.h"
#include "device/estimate.h"
#include "device/probe_cpu.h"
#include "families/registry.h"
#include "run/pipeline/slow_backend_testing.h"

namespace sparkle::testing {

inline Device cpu_of_tests() {
  Device device = probe_cpu({.threads = 2});
  estimate_rates(device);
  return device;
}

inline std::shared_ptr<Backend> host_of_tests() {
  return cpu::make_cpu_backend(cpu_of_tests(), std::make_shared<ThreadPool>(2));
}

inline std::shared_ptr<SlowBackend> device_without(const std::vector<Family>& families) {
  Device device = cpu_of_tests();
  device.name = "a device without some kernels";
  for (const Family family : families)
    for (const Variant& variant : info(family).variants)
      device.denylist += (device.denylist.empty() ? "" : " ") + std::string(name_of(family)) + "/" + std::string(variant.name);
  return std::make_shared<SlowBackend>(cpu::make_cpu_backend(device, std::make_shared<ThreadPool>(2)));
}

}  // namespace sparkle::testing
