// Updates put where indices say, which may count from the end; one that lies outside is taken to the nearest element of its
// axis and reported. Without a reduction the last of several at a place stays: claims are cleared, each place is claimed by the
// highest number among its updates, which then writes; a thread an update. With one a thread takes those that may meet, one
// after the other in row-major order of the indices, so that results are the same on every run.
#include "backends/cuda/kernels/elements/elements.cuh"
#include "backends/cuda/kernels/gemm_index.cuh"
#include "backends/cuda/kernels/moves/bounds.cuh"
#include "backends/cuda/kernels/moves/scatter_record.h"

using namespace sparkle::cuda;

namespace {

constexpr int kAdd = 1, kMul = 2, kMax = 3;  // reductions
constexpr uint32_t kUnclaimed = 0xffffffffu;

// Offsets of an update: its own, y's, its indices', their row-major number, and its place among the claims.
struct Offsets {
  int64_t update = 0, y = 0, index = 0, order = 0, slot = 0;

  // Of update number `item` over the axes [first, end), on top.
  SPARKLE_DEVICE void move_along(const ScatterRecord& record, uint32_t item, int first, int end) {
    for (int i = end - 1; i >= first; --i) {
      const auto at = static_cast<int32_t>(fast_divmod(item, record.size[i]));
      update += int64_t{at} * record.update[i];
      y += int64_t{at} * record.to[i];
      index += int64_t{at} * record.index[i];
      order += int64_t{at} * record.order[i];
      slot += int64_t{at} * record.slot[i];
    }
  }
  // And where its indices lead.
  SPARKLE_DEVICE void move_to_target(const ScatterRecord& record, bool reports) {
    for (int32_t i = 0; i < record.picked; ++i) {
      const int64_t size = record.picked_size[i];
      const int64_t named = index_at(record.indices, record.is_long, index + int64_t{i} * record.tuple_stride);
      if (reports && (named < -size || named >= size)) report_outside(record.report, static_cast<uint32_t>(order + i), named);
      const int64_t at = index_within(named, size);
      y += at * record.picked_to[i];
      slot += at * record.picked_slot[i];
    }
  }
};

SPARKLE_DEVICE uint32_t number_of_thread() { return block_x() * kScatterThreads + thread_id(); }
SPARKLE_DEVICE Offsets offsets_of(const ScatterRecord& record, uint32_t item, bool reports) {
  Offsets p;
  p.move_along(record, item, 0, record.rank);
  p.move_to_target(record, reports);
  return p;
}

// All updates, or those alone that have claimed their places.
template <class Cell>
SPARKLE_DEVICE void write_updates(const ScatterRecord& record, bool claimed) {
  const uint32_t i = number_of_thread();
  if (i >= record.parallel * record.serial) return;
  const Offsets p = offsets_of(record, i, !claimed);
  if (claimed && load_global(record.claims + p.slot) != ~static_cast<uint32_t>(p.order)) return;
  store_global(static_cast<Cell*>(record.y) + p.y, load_global(static_cast<const Cell*>(record.updates) + p.update));
}

// As families/scatter/combine.h: integers wrap around, NaN stays NaN.
template <class T>
SPARKLE_DEVICE T combined(int reduction, T old, T update) {
  if (reduction == kAdd || reduction == kMul) {
    if constexpr (kIsInteger<T>) {
      const auto a = static_cast<uint64_t>(old), b = static_cast<uint64_t>(update);
      return static_cast<T>(reduction == kAdd ? a + b : a * b);
    } else {
      return reduction == kAdd ? old + update : old * update;
    }
  }
  if (old != old) return old;
  if (update != update) return update;
  return (reduction == kMax ? old < update : update < old) ? update : old;
}

template <class T>
SPARKLE_DEVICE void walk_updates(const ScatterRecord& record) {
  const uint32_t i = number_of_thread();
  if (i >= record.parallel) return;
  const auto type = static_cast<DType>(record.type);
  Offsets own;
  own.move_along(record, i, record.serial_rank, record.rank);
  for (uint32_t step = 0; step < record.serial; ++step) {
    Offsets p = own;
    p.move_along(record, step, 0, record.serial_rank);
    p.move_to_target(record, true);
    const T old = loaded_by<T>([](const auto* from) { return load_own(from); }, type, record.y, p.y);
    stored(type, record.y, p.y, combined(record.reduction, old, loaded<T>(type, record.updates, p.update)));
  }
}

}  // namespace

SPARKLE_KERNEL(sparkle_scatter_clear, ScatterRecord, kScatterThreads, 8) {
  const uint32_t i = number_of_thread();
  if (i < record.parallel) store_global(record.claims + i, uint32_t{kUnclaimed});
}
// The highest number is the lowest of their complements.
SPARKLE_KERNEL(sparkle_scatter_claim, ScatterRecord, kScatterThreads, 8) {
  const uint32_t i = number_of_thread();
  if (i >= record.parallel * record.serial) return;
  const Offsets p = offsets_of(record, i, true);
  atomic_min(record.claims + p.slot, ~static_cast<uint32_t>(p.order));
}
// Indices alone, where there is nothing to write.
SPARKLE_KERNEL(sparkle_scatter_look, ScatterRecord, kScatterThreads, 8) {
  const uint32_t i = number_of_thread();
  if (i < record.parallel * record.serial) offsets_of(record, i, true);
}
SPARKLE_KERNEL(sparkle_scatter_last_1, ScatterRecord, kScatterThreads, 8) { write_updates<uint8_t>(record, true); }
SPARKLE_KERNEL(sparkle_scatter_last_2, ScatterRecord, kScatterThreads, 8) { write_updates<uint16_t>(record, true); }
SPARKLE_KERNEL(sparkle_scatter_last_4, ScatterRecord, kScatterThreads, 8) { write_updates<uint32_t>(record, true); }
SPARKLE_KERNEL(sparkle_scatter_last_8, ScatterRecord, kScatterThreads, 8) { write_updates<uint64_t>(record, true); }
SPARKLE_KERNEL(sparkle_scatter_put_1, ScatterRecord, kScatterThreads, 8) { write_updates<uint8_t>(record, false); }
SPARKLE_KERNEL(sparkle_scatter_put_2, ScatterRecord, kScatterThreads, 8) { write_updates<uint16_t>(record, false); }
SPARKLE_KERNEL(sparkle_scatter_put_4, ScatterRecord, kScatterThreads, 8) { write_updates<uint32_t>(record, false); }
SPARKLE_KERNEL(sparkle_scatter_put_8, ScatterRecord, kScatterThreads, 8) { write_updates<uint64_t>(record, false); }
SPARKLE_KERNEL(sparkle_scatter_walk_f32, ScatterRecord, kScatterThreads, 8) { walk_updates<float>(record); }
SPARKLE_KERNEL(sparkle_scatter_walk_f64, ScatterRecord, kScatterThreads, 8) { walk_updates<double>(record); }
SPARKLE_KERNEL(sparkle_scatter_walk_i64, ScatterRecord, kScatterThreads, 8) { walk_updates<int64_t>(record); }
SPARKLE_KERNEL(sparkle_scatter_walk_u64, ScatterRecord, kScatterThreads, 8) { walk_updates<uint64_t>(record); }
