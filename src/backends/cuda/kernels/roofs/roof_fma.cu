// How many multiply-adds there are: chains in registers, each of which counts by one.
#include "backends/cuda/kernels/roofs/roof_record.h"
#include "backends/cuda/ptx/matrix.cuh"
#include "backends/cuda/ptx/threads.cuh"

using namespace sparkle::cuda;

SPARKLE_KERNEL(sparkle_roof_fma_f32, RoofRecord, kRoofThreads, 4) {
  float sums[kRoofFmaChains];
  SPARKLE_UNROLL
  for (int i = 0; i < kRoofFmaChains; ++i) sums[i] = static_cast<float>(i);
  SPARKLE_ROLLED
  for (uint32_t round = 0; round < record.rounds; ++round) {
    SPARKLE_UNROLL
    for (int p = 0; p < kRoofFmaProducts; ++p) {
      SPARKLE_UNROLL
      for (int i = 0; i < kRoofFmaChains; ++i) sums[i] = multiply_add(sums[i], record.one, record.one);
    }
  }
  float all = 0;
  SPARKLE_UNROLL
  for (int i = 0; i < kRoofFmaChains; ++i) all += sums[i];
  store_global(record.to + block_x() * kRoofThreads + thread_id(), bits_of(all));
}
