// What a kernel is written on: nvcc's words, or those of the functional model (tests/cuda_model), in which the same text
// compiles for the host. Each wrapper of this folder is one instruction of PTX in either.
//
// A kernel may begin while the one before it in a graph still runs (a programmatic edge, sm_90 and later). So each begins by
// waiting for that one: SPARKLE_KERNEL does it before the body that follows. One with a prologue - of shared memory, its record
// and nothing else - is a SPARKLE_KERNEL_WITH_PROLOGUE and does it itself, in all of its threads.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define SPARKLE_DEVICE __device__ __forceinline__
// Called, where the code would else stand in many places.
#define SPARKLE_CALLED __device__ __noinline__
// A kernel's entry: its record comes by value. `blocks`: of these many a core the registers are to suffice for.
#define SPARKLE_KERNEL_WITH_PROLOGUE(name, Record, threads, blocks) \
  extern "C" __global__ void __launch_bounds__(threads, blocks) name(const __grid_constant__ Record record)
#define SPARKLE_UNROLL _Pragma("unroll")
#define SPARKLE_ROLLED _Pragma("unroll 1")
#else
#include "cuda_model/model.h"
#define SPARKLE_DEVICE inline
#define SPARKLE_CALLED inline
#define SPARKLE_KERNEL_WITH_PROLOGUE(name, Record, threads, blocks)                                                    \
  static void name(const Record& record);                                                                              \
  static const cuda_model::Registered name##_registered(                                                               \
      {#name, sizeof(Record), alignof(Record), threads, [](const void* r) { name(*static_cast<const Record*>(r)); }}); \
  static void name(const Record& record)
#define SPARKLE_UNROLL
#define SPARKLE_ROLLED
#endif

#define SPARKLE_KERNEL(name, Record, threads, blocks)             \
  static SPARKLE_DEVICE void name##_behind(const Record& record); \
  SPARKLE_KERNEL_WITH_PROLOGUE(name, Record, threads, blocks) {   \
    wait_for_prerequisites();                                     \
    launch_dependents();                                          \
    name##_behind(record);                                        \
  }                                                               \
  static SPARKLE_DEVICE void name##_behind(const Record& record)

namespace sparkle::cuda {

// Until the kernels before this one are over and what they wrote is there; at once where none of them runs any more. Nothing of
// device memory may be touched before: they write it, or still read what this one writes.
SPARKLE_DEVICE void wait_for_prerequisites() {
#ifdef __CUDACC__
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
#else
  cuda_model::wait_for_prerequisites();
#endif
}
// The kernels behind this one may begin once every block has come here or is over: none of theirs takes the place of one of
// ours that has not begun.
SPARKLE_DEVICE void launch_dependents() {
#ifdef __CUDACC__
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
#else
  cuda_model::launch_dependents();
#endif
}

// Four registers that move at once.
struct alignas(16) Words4 {
  uint32_t v[4];
};

}  // namespace sparkle::cuda
