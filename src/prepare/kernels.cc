#include "prepare/kernels.h"

#include "base/waiting.h"

namespace sparkle {

Status try_kernels(Backend& backend, std::span<const KernelRequest> requests) {
  std::vector<ScheduledStage> stages;
  for (const KernelRequest& r : requests) stages.push_back({r.stage, r.schedule});
  return backend.try_out(stages);
}

Result<Kernels> make_kernels(Backend& backend, std::span<const KernelRequest> requests) {
  SPARKLE_CHECK(try_kernels(backend, requests));
  const bool waits = backend.device().has_workgroups();  // for a driver's compiler
  Kernels kernels;
  for (const KernelRequest& r : requests) {
    if (waits) tell_waiting("compiling shaders", kernels.size(), requests.size());
    auto compiled = backend.compile(*r.stage, *r.schedule, r.constants);
    if (!compiled.ok()) {
      if (waits) tell_waiting("compiling shaders", requests.size(), requests.size());
      Error error = compiled.take_error();
      if (!r.name.empty()) error.message = "Step '" + r.name + "' cannot be compiled: " + error.message;
      return error;
    }
    kernels.push_back(std::move(*compiled));
  }
  if (waits) tell_waiting("compiling shaders", requests.size(), requests.size());
  return kernels;
}

}  // namespace sparkle
