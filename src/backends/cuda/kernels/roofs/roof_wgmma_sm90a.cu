// How many products of a warpgroup there are: two of them, each with 64 rows of its own, by the same 256 columns in shared
// memory. All are ones, so that no swizzle matters.
#include "backends/cuda/kernels/roofs/roof_record.h"
#include "backends/cuda/ptx/barrier.cuh"
#include "backends/cuda/ptx/threads.cuh"
#include "backends/cuda/ptx/wgmma.cuh"

using namespace sparkle::cuda;

namespace {

template <Operand kType>
SPARKLE_DEVICE void measure(const RoofRecord& record) {
  using Sum = typename SumOf<kType>::Type;
  const SharedAddress shared = shared_base();
  const Words4 ones{{record.ones, record.ones, record.ones, record.ones}};
  for (uint32_t at = 16 * thread_id(); at < kRoofGroupBytes; at += 16 * kRoofThreads) store_shared_16(shared + at, ones);
  fence_async_proxy();
  sync_block();
  const uint64_t columns = descriptor_of(shared),
                 rows = descriptor_of(shared + 128 * (kRoofColumns + 64 * (thread_id() / 128)));
  Sum sums[kRoofColumns / 2];
  SPARKLE_UNROLL
  for (int i = 0; i < kRoofColumns / 2; ++i) sums[i] = 0;
  hold(sums);
  SPARKLE_ROLLED
  for (uint32_t round = 0; round < record.rounds; ++round) {
    wgmma_fence();
    SPARKLE_UNROLL
    for (int p = 0; p < kRoofGroupProducts; ++p)  // 32 bytes of k are 2 of the descriptors' units
      multiply_group<kType, kType, kRoofColumns>(sums, rows + 2 * p, columns + 2 * p, p > 0 || round > 0);
    wgmma_commit();
    wgmma_wait<1>();
  }
  wgmma_wait<0>();
  hold(sums);
  Sum all = 0;
  SPARKLE_UNROLL
  for (int i = 0; i < kRoofColumns / 2; ++i) all += sums[i];
  store_global(record.to + block_x() * kRoofThreads + thread_id(), __builtin_bit_cast(uint32_t, all));
}

}  // namespace

SPARKLE_KERNEL(sparkle_roof_wgmma_f16, RoofRecord, kRoofThreads, 1) { measure<Operand::f16>(record); }
SPARKLE_KERNEL(sparkle_roof_wgmma_bf16, RoofRecord, kRoofThreads, 1) { measure<Operand::bf16>(record); }
SPARKLE_KERNEL(sparkle_roof_wgmma_tf32, RoofRecord, kRoofThreads, 1) { measure<Operand::tf32>(record); }
SPARKLE_KERNEL(sparkle_roof_wgmma_i8, RoofRecord, kRoofThreads, 1) { measure<Operand::i8>(record); }
SPARKLE_KERNEL(sparkle_roof_wgmma_e4m3, RoofRecord, kRoofThreads, 1) { measure<Operand::e4m3>(record); }
SPARKLE_KERNEL(sparkle_roof_wgmma_e5m2, RoofRecord, kRoofThreads, 1) { measure<Operand::e5m2>(record); }
