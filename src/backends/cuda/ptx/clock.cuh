// The time of the device, for kernels that wait by it.
#pragma once

#include "backends/cuda/ptx/target.cuh"

#ifndef __CUDACC__
#include <chrono>
#endif

namespace sparkle::cuda {

// Since some moment that stays the same. The device counts on in steps of up to a microsecond.
SPARKLE_DEVICE uint64_t nanoseconds() {
#ifdef __CUDACC__
  uint64_t time;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  return time;
#else
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
#endif
}

}  // namespace sparkle::cuda
