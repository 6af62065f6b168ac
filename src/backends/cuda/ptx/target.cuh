// What a kernel is written on: nvcc's words, or those of the functional model (tests/cuda_model), in which the same text
// compiles for the host. Each wrapper of this folder is one instruction of PTX in either.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define SPARKLE_DEVICE __device__ __forceinline__
// Called, where the code would else stand in many places.
#define SPARKLE_CALLED __device__ __noinline__
// A kernel's entry: its record comes by value. `blocks`: of these many a core the registers are to suffice for.
#define SPARKLE_KERNEL(name, Record, threads, blocks) \
  extern "C" __global__ void __launch_bounds__(threads, blocks) name(const __grid_constant__ Record record)
#define SPARKLE_UNROLL _Pragma("unroll")
#define SPARKLE_ROLLED _Pragma("unroll 1")
#else
#include "cuda_model/model.h"
#define SPARKLE_DEVICE inline
#define SPARKLE_CALLED inline
#define SPARKLE_KERNEL(name, Record, threads, blocks)                                                                  \
  static void name(const Record& record);                                                                              \
  static const cuda_model::Registered name##_registered(                                                               \
      {#name, sizeof(Record), alignof(Record), threads, [](const void* r) { name(*static_cast<const Record*>(r)); }}); \
  static void name(const Record& record)
#define SPARKLE_UNROLL
#define SPARKLE_ROLLED
#endif

namespace sparkle::cuda {

// Four registers that move at once.
struct alignas(16) Words4 {
  uint32_t v[4];
};

}  // namespace sparkle::cuda
