// Matrices with zeros on one side of a diagonal: a chunk of x or zeros.
#include "backends/cuda/kernels/gemm_index.cuh"
#include "backends/cuda/kernels/moves/triangle_record.h"
#include "backends/cuda/ptx/memory.cuh"

using namespace sparkle::cuda;

namespace {

template <class Chunk>
SPARKLE_DEVICE void triangle_chunks(const TriangleRecord& record) {
  const uint32_t first = block_x() * (kMoveThreads * kMoveSteps) + thread_id();
  SPARKLE_ROLLED
  for (int step = 0; step < kMoveSteps; ++step) {
    uint32_t index = first + static_cast<uint32_t>(step * kMoveThreads);
    if (index >= record.count) return;
    int64_t from = 0, to = 0;
    int32_t side = 0;
    for (int i = record.axes.rank - 1; i >= 0; --i) {
      const auto at = static_cast<int32_t>(fast_divmod(index, record.axes.size[i]));
      from += int64_t{at} * record.axes.x[i];
      to += int64_t{at} * record.axes.y[i];
      side += at * record.side[i];
    }
    Chunk value{};
    if (side >= record.least) value = load_global(static_cast<const Chunk*>(record.x) + from);
    store_global(static_cast<Chunk*>(record.y) + to, value);
  }
}

}  // namespace

SPARKLE_KERNEL(sparkle_triangle_chunks_1, TriangleRecord, kMoveThreads, 8) { triangle_chunks<uint8_t>(record); }
SPARKLE_KERNEL(sparkle_triangle_chunks_2, TriangleRecord, kMoveThreads, 8) { triangle_chunks<uint16_t>(record); }
SPARKLE_KERNEL(sparkle_triangle_chunks_4, TriangleRecord, kMoveThreads, 8) { triangle_chunks<uint32_t>(record); }
SPARKLE_KERNEL(sparkle_triangle_chunks_8, TriangleRecord, kMoveThreads, 8) { triangle_chunks<uint64_t>(record); }
SPARKLE_KERNEL(sparkle_triangle_chunks_16, TriangleRecord, kMoveThreads, 8) { triangle_chunks<Words4>(record); }
