// The main loop of products of 8-bit floats by wgmma. Tensor Cores keep some 14 bits of their sums, so that a long one loses what
// is small: each step's 128 products are added to sums in f32. The other warpgroup's products run meanwhile.
#pragma once

#include "backends/cuda/ptx/barrier.cuh"
#include "backends/cuda/ptx/wgmma.cuh"

namespace sparkle::cuda {

// Of a Gemm whose pixels are the products' rows: `steps` of a consumer, from `turn` on.
template <class Gemm>
SPARKLE_DEVICE void multiply_float8(SharedAddress shared, uint32_t consumer, uint32_t lane, int32_t steps,
                                    typename Gemm::Turn& turn, float (&sums)[Gemm::kColumns / 2]) {
  constexpr uint32_t kLines = Gemm::kLeftBytes / Gemm::kConsumers;
  float part[Gemm::kColumns / 2];
  SPARKLE_UNROLL
  for (int i = 0; i < Gemm::kColumns / 2; ++i) part[i] = 0;
  SPARKLE_ROLLED
  for (int32_t step = 0; step < steps; ++step) {
    const SharedAddress stage = shared + turn.stage * Gemm::kStageBytes;
    const uint64_t pixels = descriptor_of(stage + consumer * kLines), filters = descriptor_of(stage + Gemm::kLeftBytes);
    barrier_wait(Gemm::full(shared, turn.stage), turn.parity);
    hold(part);
    wgmma_fence();
    SPARKLE_UNROLL
    for (int k = 0; k < Gemm::kProducts; ++k)
      multiply_group<Gemm::kA, Gemm::kB, Gemm::kColumns>(part, pixels + 2 * k, filters + 2 * k, k > 0);
    wgmma_commit();
    wgmma_wait<0>();
    hold(part);
    Gemm::let_go(shared, turn.stage, lane);
    SPARKLE_UNROLL
    for (int i = 0; i < Gemm::kColumns / 2; ++i) sums[i] += part[i];
    turn.next();
  }
}

}  // namespace sparkle::cuda
