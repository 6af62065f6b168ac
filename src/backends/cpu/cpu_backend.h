// The CPU backend: kernels run on an Executor in the caller's thread; a submission is complete when submit returns.
#pragma once

#include "backends/backend.h"

namespace sparkle::cpu {

// `device` describes this machine (see probe_cpu); `executor` runs the kernels and must outlive nothing: it is shared.
std::shared_ptr<Backend> make_cpu_backend(const Device& device, std::shared_ptr<Executor> executor);

}  // namespace sparkle::cpu
