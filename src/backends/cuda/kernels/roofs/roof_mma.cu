// How many products of a warp there are: sums in registers that do not wait for each other, of ones by ones.
#include "backends/cuda/kernels/roofs/roof_record.h"
#include "backends/cuda/ptx/matrix.cuh"
#include "backends/cuda/ptx/threads.cuh"

using namespace sparkle::cuda;

namespace {

template <Operand kType>
SPARKLE_DEVICE void measure(const RoofRecord& record) {
  typename SumOf<kType>::Type sums[kRoofMmaChains][4] = {};
  const uint32_t a[4] = {record.ones, record.ones, record.ones, record.ones};
  SPARKLE_ROLLED
  for (uint32_t round = 0; round < record.rounds; ++round) {
    SPARKLE_UNROLL
    for (int p = 0; p < kRoofMmaProducts; ++p) {
      SPARKLE_UNROLL
      for (int i = 0; i < kRoofMmaChains; ++i) multiply<kType>(sums[i], a, record.ones, record.ones);
    }
  }
  typename SumOf<kType>::Type all = 0;
  SPARKLE_UNROLL
  for (int i = 0; i < kRoofMmaChains; ++i) all += sums[i][0] + sums[i][1] + sums[i][2] + sums[i][3];
  store_global(record.to + block_x() * kRoofThreads + thread_id(), __builtin_bit_cast(uint32_t, all));
}

}  // namespace

SPARKLE_KERNEL(sparkle_roof_mma_f16, RoofRecord, kRoofThreads, 2) { measure<Operand::f16>(record); }
SPARKLE_KERNEL(sparkle_roof_mma_bf16, RoofRecord, kRoofThreads, 2) { measure<Operand::bf16>(record); }
SPARKLE_KERNEL(sparkle_roof_mma_tf32, RoofRecord, kRoofThreads, 2) { measure<Operand::tf32>(record); }
SPARKLE_KERNEL(sparkle_roof_mma_i8, RoofRecord, kRoofThreads, 2) { measure<Operand::i8>(record); }
