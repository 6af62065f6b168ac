// Where a thread stands, and how the threads of a warp, a block and a cluster wait for each other.
#pragma once

#include "backends/cuda/ptx/target.cuh"

namespace sparkle::cuda {

#ifdef __CUDACC__
SPARKLE_DEVICE uint32_t thread_id() { return threadIdx.x; }
// Read anew, so that no register keeps them from before.
SPARKLE_DEVICE uint32_t block_x_again() {
  uint32_t id;
  asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(id));
  return id;
}
SPARKLE_DEVICE uint32_t thread_id_again() {
  uint32_t id;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(id));
  return id;
}
// The same number, of which the compiler does not know that: what is computed of it is computed again.
SPARKLE_DEVICE int32_t anew(int32_t value) {
  int32_t same;
  asm volatile("mov.b32 %0, %1;" : "=r"(same) : "r"(value));
  return same;
}
SPARKLE_DEVICE uint32_t block_x() { return blockIdx.x; }
SPARKLE_DEVICE uint32_t block_y() { return blockIdx.y; }
SPARKLE_DEVICE uint32_t block_z() { return blockIdx.z; }
SPARKLE_DEVICE uint32_t grid_x() { return gridDim.x; }
SPARKLE_DEVICE uint32_t grid_y() { return gridDim.y; }
SPARKLE_DEVICE uint32_t block_threads() { return blockDim.x; }
// The same number in every thread of a warp, told to the compiler.
SPARKLE_DEVICE uint32_t uniform(uint32_t value) { return __shfl_sync(0xffffffffu, value, 0); }
SPARKLE_DEVICE void sync_block() { __syncthreads(); }
SPARKLE_DEVICE void sync_warp() { __syncwarp(); }
// Barrier `number` (1 to 15) for `threads` threads of the block.
SPARKLE_DEVICE void sync_threads(uint32_t number, uint32_t threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}
SPARKLE_DEVICE uint32_t shuffle(uint32_t value, uint32_t lane) {
  return __shfl_sync(0xffffffffu, value, static_cast<int>(lane));
}
SPARKLE_DEVICE uint32_t shuffle_xor(uint32_t value, uint32_t mask) {
  return __shfl_xor_sync(0xffffffffu, value, static_cast<int>(mask));
}
SPARKLE_DEVICE uint32_t ballot(bool vote) { return __ballot_sync(0xffffffffu, vote); }
SPARKLE_DEVICE float shuffle_xor(float value, uint32_t mask) {
  return __shfl_xor_sync(0xffffffffu, value, static_cast<int>(mask));
}
SPARKLE_DEVICE uint32_t cluster_rank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
SPARKLE_DEVICE void sync_cluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
SPARKLE_DEVICE void fence_device() { __threadfence(); }
SPARKLE_DEVICE uint32_t atomic_add(uint32_t* at, uint32_t value) { return atomicAdd(at, value); }
SPARKLE_DEVICE uint32_t atomic_min(uint32_t* at, uint32_t value) { return atomicMin(at, value); }
// Until a word of memory has a value that another block gives it, and what that block wrote before is there to be read.
SPARKLE_DEVICE void wait_for_word(const uint32_t* at, uint32_t value) {
  for (;;) {
    uint32_t now;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(at) : "memory");
    if (now == value) return;
    __nanosleep(32);
  }
}
#else
inline uint32_t thread_id() { return cuda_model::thread_id(); }
inline uint32_t block_x_again() { return cuda_model::block_id().x; }
inline uint32_t thread_id_again() { return cuda_model::thread_id(); }
inline int32_t anew(int32_t value) { return value; }
inline uint32_t block_x() { return cuda_model::block_id().x; }
inline uint32_t block_y() { return cuda_model::block_id().y; }
inline uint32_t block_z() { return cuda_model::block_id().z; }
inline uint32_t grid_x() { return cuda_model::launched().grid.x; }
inline uint32_t grid_y() { return cuda_model::launched().grid.y; }
inline uint32_t block_threads() { return cuda_model::launched().block.x; }
inline uint32_t uniform(uint32_t value) { return cuda_model::shuffle(value, 0, 0); }
inline void sync_block() { cuda_model::sync_threads(0, block_threads()); }
inline void sync_warp() { cuda_model::sync_warp(); }
inline void sync_threads(uint32_t number, uint32_t threads) { cuda_model::sync_threads(number, threads); }
inline uint32_t shuffle(uint32_t value, uint32_t lane) { return cuda_model::shuffle(value, lane, 0); }
inline uint32_t shuffle_xor(uint32_t value, uint32_t mask) { return cuda_model::shuffle(value, 0, mask); }
inline float shuffle_xor(float value, uint32_t mask) {
  return __builtin_bit_cast(float, cuda_model::shuffle(__builtin_bit_cast(uint32_t, value), 0, mask));
}
inline uint32_t ballot(bool vote) { return cuda_model::ballot(vote); }
inline uint32_t cluster_rank() { return cuda_model::cluster_rank(); }
inline void sync_cluster() { cuda_model::sync_cluster(); }
inline void fence_device() {}
inline uint32_t atomic_add(uint32_t* at, uint32_t value) { return cuda_model::atomic_add(at, value); }
inline void wait_for_word(const uint32_t* at, uint32_t value) { cuda_model::wait_for_word(at, value); }
inline uint32_t atomic_min(uint32_t* at, uint32_t value) { return cuda_model::atomic_min(at, value); }
#endif
SPARKLE_DEVICE uint32_t lane_id() { return thread_id() & 31u; }
SPARKLE_DEVICE uint32_t warp_id() { return thread_id() >> 5; }

}  // namespace sparkle::cuda
