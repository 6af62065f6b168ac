// Copies between any two layouts: a chunk of 1 to 16 bytes a thread and step, or tiles of 32 x 32 through shared memory where neighbours
// in x lie apart in y and the other way round, so that both sides see whole lines.
#include "backends/cuda/kernels/moves/copy_record.h"
#include "backends/cuda/kernels/gemm_index.cuh"
#include "backends/cuda/ptx/memory.cuh"
#include "backends/cuda/ptx/threads.cuh"

using namespace sparkle::cuda;

namespace {

SPARKLE_DEVICE void place(uint32_t index, const MoveAxes& axes, int64_t& from, int64_t& to) {
  for (int i = axes.rank - 1; i >= 0; --i) {
    const auto at = static_cast<int32_t>(fast_divmod(index, axes.size[i]));
    from += at * axes.x[i];
    to += at * axes.y[i];
  }
}

template <class Chunk>
SPARKLE_DEVICE void copy_chunks(const CopyRecord& record) {
  const uint32_t first = block_x() * (kMoveThreads * kMoveSteps) + thread_id();
  // All loads go before the first store.
  Chunk value[kMoveSteps];
  int64_t to[kMoveSteps];
  SPARKLE_UNROLL
  for (int step = 0; step < kMoveSteps; ++step) {
    const uint32_t chunk = first + static_cast<uint32_t>(step * kMoveThreads);
    int64_t from = 0;
    to[step] = 0;
    place(chunk < record.count ? chunk : record.count - 1, record.axes, from, to[step]);
    value[step] = load_global(static_cast<const Chunk*>(record.x) + from);
  }
  SPARKLE_UNROLL
  for (int step = 0; step < kMoveSteps; ++step)
    if (first + static_cast<uint32_t>(step * kMoveThreads) < record.count)
      store_global(static_cast<Chunk*>(record.y) + to[step], value[step]);
}

// A row of the tile is one word longer than its lines: columns then lie in different banks.
constexpr uint32_t kRow = kTransposeTile + 1, kPlane = 4 * kTransposeTile * kRow;
constexpr int kRows = kTransposeThreads / kTransposeTile;

template <class Chunk>
SPARKLE_DEVICE void copy_transpose(const TransposeRecord& record) {
  const SharedAddress tile = shared_base();
  uint32_t index = block_x();
  const auto a0 = static_cast<int>(fast_divmod(index, record.tiles_a)) * kTransposeTile;
  const auto b0 = static_cast<int>(fast_divmod(index, record.tiles_b)) * kTransposeTile;
  int64_t from = 0, to = 0;
  place(index, record.axes, from, to);
  const auto column = static_cast<int>(thread_id() % kTransposeTile), row0 = static_cast<int>(thread_id() / kTransposeTile);
  SPARKLE_UNROLL
  for (int row = 0; row < kTransposeTile; row += kRows) {
    const int a = a0 + column, b = b0 + row + row0;
    if (a >= record.size_a || b >= record.size_b) continue;
    const Chunk value = load_global(static_cast<const Chunk*>(record.x) + from + a + int64_t{b} * record.stride_x);
    const SharedAddress at = tile + 4 * static_cast<uint32_t>(static_cast<uint32_t>(row + row0) * kRow + static_cast<uint32_t>(column));
    store_shared_4(at, static_cast<uint32_t>(value));
    if constexpr (sizeof(Chunk) == 8) store_shared_4(at + kPlane, static_cast<uint32_t>(value >> 32));
  }
  sync_block();
  SPARKLE_UNROLL
  for (int row = 0; row < kTransposeTile; row += kRows) {
    const int a = a0 + row + row0, b = b0 + column;
    if (a >= record.size_a || b >= record.size_b) continue;
    const SharedAddress at = tile + 4 * (static_cast<uint32_t>(column) * kRow + static_cast<uint32_t>(row + row0));
    uint64_t value = load_shared_4(at);
    if constexpr (sizeof(Chunk) == 8) value |= uint64_t{load_shared_4(at + kPlane)} << 32;
    store_global(static_cast<Chunk*>(record.y) + to + b + int64_t{a} * record.stride_y, static_cast<Chunk>(value));
  }
}

}  // namespace

SPARKLE_KERNEL(sparkle_copy_chunks_1, CopyRecord, kMoveThreads, 8) { copy_chunks<uint8_t>(record); }
SPARKLE_KERNEL(sparkle_copy_chunks_2, CopyRecord, kMoveThreads, 8) { copy_chunks<uint16_t>(record); }
SPARKLE_KERNEL(sparkle_copy_chunks_4, CopyRecord, kMoveThreads, 8) { copy_chunks<uint32_t>(record); }
SPARKLE_KERNEL(sparkle_copy_chunks_8, CopyRecord, kMoveThreads, 8) { copy_chunks<uint64_t>(record); }
SPARKLE_KERNEL(sparkle_copy_chunks_16, CopyRecord, kMoveThreads, 8) { copy_chunks<Words4>(record); }
SPARKLE_KERNEL(sparkle_copy_transpose_1, TransposeRecord, kTransposeThreads, 4) { copy_transpose<uint8_t>(record); }
SPARKLE_KERNEL(sparkle_copy_transpose_2, TransposeRecord, kTransposeThreads, 4) { copy_transpose<uint16_t>(record); }
SPARKLE_KERNEL(sparkle_copy_transpose_4, TransposeRecord, kTransposeThreads, 4) { copy_transpose<uint32_t>(record); }
SPARKLE_KERNEL(sparkle_copy_transpose_8, TransposeRecord, kTransposeThreads, 4) { copy_transpose<uint64_t>(record); }
