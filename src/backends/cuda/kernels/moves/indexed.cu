// Moves whose places in x come from tables along some axes (padding, the nearest element at another size), and elements made of several
// by tables of taps (linear and cubic filters).
#include "backends/cuda/kernels/moves/copy_record.h"
#include "backends/cuda/kernels/elements/elements.cuh"
#include "backends/cuda/kernels/gemm_index.cuh"

using namespace sparkle::cuda;

namespace {

template <class Chunk>
SPARKLE_DEVICE void indexed_chunks(const IndexedRecord& record) {
  const uint32_t first = block_x() * (kMoveThreads * kMoveSteps) + thread_id();
  SPARKLE_ROLLED
  for (int step = 0; step < kMoveSteps; ++step) {
    uint32_t index = first + static_cast<uint32_t>(step * kMoveThreads);
    if (index >= record.count) return;
    int64_t from = 0, to = 0;
    bool outside = false;
    for (int i = record.axes.rank - 1; i >= 0; --i) {
      const auto at = static_cast<int32_t>(fast_divmod(index, record.axes.size[i]));
      to += int64_t{at} * record.axes.y[i];
      if (record.start[i] < 0) {
        from += int64_t{at} * record.axes.x[i];
        continue;
      }
      const int32_t place = load_global(record.table + record.start[i] + at);
      outside = outside || place == kNowhere;
      from += place;
    }
    Chunk value;
    if (outside) __builtin_memcpy(&value, record.value, sizeof value);
    else value = load_global(static_cast<const Chunk*>(record.x) + from);
    store_global(static_cast<Chunk*>(record.y) + to, value);
  }
}

}  // namespace

SPARKLE_KERNEL(sparkle_indexed_chunks_1, IndexedRecord, kMoveThreads, 8) { indexed_chunks<uint8_t>(record); }
SPARKLE_KERNEL(sparkle_indexed_chunks_2, IndexedRecord, kMoveThreads, 8) { indexed_chunks<uint16_t>(record); }
SPARKLE_KERNEL(sparkle_indexed_chunks_4, IndexedRecord, kMoveThreads, 8) { indexed_chunks<uint32_t>(record); }
SPARKLE_KERNEL(sparkle_indexed_chunks_8, IndexedRecord, kMoveThreads, 8) { indexed_chunks<uint64_t>(record); }
SPARKLE_KERNEL(sparkle_indexed_chunks_16, IndexedRecord, kMoveThreads, 8) { indexed_chunks<Words4>(record); }

SPARKLE_KERNEL(sparkle_resize_taps, TapsRecord, kMoveThreads, 8) {
  uint32_t index = block_x() * kMoveThreads + thread_id();
  if (index >= record.count) return;
  int64_t from = 0, to = 0;
  int32_t first[kTapAxes] = {record.start[0], record.start[1], record.start[2]};
  for (int i = record.axes.rank - 1; i >= 0; --i) {
    const auto at = static_cast<int32_t>(fast_divmod(index, record.axes.size[i]));
    to += int64_t{at} * record.axes.y[i];
    const int32_t slot = record.slot[i];
    if (slot < 0) from += int64_t{at} * record.axes.x[i];
    SPARKLE_UNROLL
    for (int s = 0; s < kTapAxes; ++s)
      if (s == slot) first[s] += at * record.taps[s];
  }
  const auto type = static_cast<DType>(record.type);
  float sum = 0;
  bool outside = false;
  for (int32_t a = 0; a < record.taps[0]; ++a)
    for (int32_t b = 0; b < record.taps[1]; ++b)
      for (int32_t c = 0; c < record.taps[2]; ++c) {
        const int32_t at[kTapAxes] = {first[0] + a, first[1] + b, first[2] + c};
        int64_t place = from;
        float weight = 1;
        SPARKLE_UNROLL
        for (int s = 0; s < kTapAxes; ++s) {
          const int32_t p = load_global(record.places + at[s]);
          outside = outside || p == kNowhere;
          place += p;
          weight *= load_global(record.weights + at[s]);
        }
        if (outside) break;
        sum += weight * loaded<float>(type, record.x, place);
      }
  stored(type, record.y, to, outside ? record.outside : sum);
}
