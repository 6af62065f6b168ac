// A backend by name: probes the machine, takes its known rates, makes the thread pool.
#pragma once

#include <memory>
#include <string>

#include "backends/backend.h"
#include "backends/cpu/cpu_backend.h"

namespace sparkle {

struct BackendOptions {
  std::string name = "auto";  // "auto" and "cpu": this machine's CPU; "reference"
  int threads = 0;            // 0: what affinity and cgroup quota allow
  bool calibrate = false;     // measure the machine's rates where they are not known
  std::shared_ptr<Executor> executor;  // threads of the caller's; nullptr: a pool of our own
  cpu::HostAllocator allocator;
};
struct OpenBackend {
  std::shared_ptr<Backend> backend;
  std::string note;  // "auto: cpu, 2 threads (affinity 2, cgroup quota none)"
};
// Errors: bad_usage for an unknown name, device_unusable for what has no backend.
Result<OpenBackend> open_backend(const BackendOptions& options);

}  // namespace sparkle
