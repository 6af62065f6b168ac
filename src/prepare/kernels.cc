#include "prepare/kernels.h"

namespace sparkle {

Status try_kernels(Backend& backend, std::span<const KernelRequest> requests) {
  std::vector<ScheduledStage> stages;
  for (const KernelRequest& r : requests) stages.push_back({r.stage, r.schedule});
  return backend.try_out(stages);
}

Result<Kernels> make_kernels(Backend& backend, std::span<const KernelRequest> requests) {
  SPARKLE_CHECK(try_kernels(backend, requests));
  Kernels kernels;
  for (const KernelRequest& r : requests) {
    auto compiled = backend.compile(*r.stage, *r.schedule, r.constants);
    if (!compiled.ok()) {
      Error error = compiled.take_error();
      if (!r.name.empty()) error.message = "Step '" + r.name + "' cannot be compiled: " + error.message;
      return error;
    }
    kernels.push_back(std::move(*compiled));
  }
  return kernels;
}

}  // namespace sparkle
