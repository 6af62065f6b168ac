// Chunks of x picked by indices, which may count from the end. One that lies outside is taken to the nearest element of its
// axis, so that nothing outside of x is read, and reported.
#include "backends/cuda/kernels/gemm_index.cuh"
#include "backends/cuda/kernels/moves/bounds.cuh"
#include "backends/cuda/kernels/moves/gather_record.h"

using namespace sparkle::cuda;

namespace {

template <class Chunk>
SPARKLE_DEVICE void gather_chunks(const GatherRecord& record) {
  const uint32_t first = block_x() * (kMoveThreads * kMoveSteps) + thread_id();
  SPARKLE_ROLLED
  for (int step = 0; step < kMoveSteps; ++step) {
    const uint32_t own = first + static_cast<uint32_t>(step * kMoveThreads);
    if (own >= record.count) return;
    uint32_t rest = own, number = 0;
    int64_t from = 0, to = 0, place = 0;
    for (int i = record.axes.rank - 1; i >= 0; --i) {
      const auto at = static_cast<int32_t>(fast_divmod(rest, record.axes.size[i]));
      from += int64_t{at} * record.axes.x[i];
      to += int64_t{at} * record.axes.y[i];
      place += int64_t{at} * record.index[i];
      number += static_cast<uint32_t>(at) * static_cast<uint32_t>(record.order[i]);
    }
    for (int32_t i = 0; i < record.picked; ++i) {
      const int64_t at = place + int64_t{i} * record.tuple_stride;
      const int64_t index = index_at(record.indices, record.is_long, at), size = record.picked_size[i];
      if (index < -size || index >= size) report_outside(record.report, number + static_cast<uint32_t>(i), index);
      from += index_within(index, size) * record.picked_strides[i];
    }
    if (record.moves) store_global(static_cast<Chunk*>(record.y) + to, load_global(static_cast<const Chunk*>(record.x) + from));
  }
}

}  // namespace

SPARKLE_KERNEL(sparkle_gather_chunks_1, GatherRecord, kMoveThreads, 8) { gather_chunks<uint8_t>(record); }
SPARKLE_KERNEL(sparkle_gather_chunks_2, GatherRecord, kMoveThreads, 8) { gather_chunks<uint16_t>(record); }
SPARKLE_KERNEL(sparkle_gather_chunks_4, GatherRecord, kMoveThreads, 8) { gather_chunks<uint32_t>(record); }
SPARKLE_KERNEL(sparkle_gather_chunks_8, GatherRecord, kMoveThreads, 8) { gather_chunks<uint64_t>(record); }
SPARKLE_KERNEL(sparkle_gather_chunks_16, GatherRecord, kMoveThreads, 8) { gather_chunks<Words4>(record); }
