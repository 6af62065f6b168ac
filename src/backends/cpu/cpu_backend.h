// The CPU backend: kernels run on an Executor in the caller's thread; a submission is complete when submit returns.
#pragma once

#include "backends/backend.h"

namespace sparkle::cpu {

// `device` describes this machine (see probe_cpu); `executor` runs the kernels and must outlive nothing: it is shared.
// Where buffers of the device come from; allocate == nullptr: the C++ runtime. Both are called from any thread.
struct HostAllocator {
  void* user = nullptr;
  void* (*allocate)(void* user, size_t bytes, size_t alignment) = nullptr;  // nullptr when there is no memory
  void (*release)(void* user, void* memory, size_t bytes, size_t alignment) = nullptr;
};

std::shared_ptr<Backend> make_cpu_backend(const Device& device, std::shared_ptr<Executor> executor,
                                          const HostAllocator& allocator = {});

}  // namespace sparkle::cpu
