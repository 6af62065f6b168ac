// The best element of each row. Long rows of which there are few are cut into parts: one launch finds the best of each
// (sparkle_top_k_parts), a second one the best of these (sparkle_top_k_of_parts).
#include "backends/cuda/kernels/rows/top_k.cuh"

using namespace sparkle::cuda;

namespace {

// The best of the elements that `number(i)` names, for i in [first, end), in all threads of the row: the highest key, then the
// lowest rank of those that have it.
template <class Key, class Number>
SPARKLE_DEVICE uint32_t best_rank(const RowsRecord& record, const RowOfThread& thread, uint32_t first, uint32_t end,
                                  Number&& number) {
  const RankedRow row(thread);
  RankedEntry<Key> best{0, kNoRank};
  for (uint32_t i = first + thread.place; i < end; i += record.depth) {
    const RankedEntry<Key> entry = row.template entry<Key>(record, number(i));
    if (is_better(entry, best)) best = entry;
  }
  const uint64_t key = over_row(record, thread, uint64_t{best.key}, [](uint64_t a, uint64_t b) { return a > b ? a : b; });
  const uint64_t rank = best.key == key ? best.rank : kNoRank;
  return static_cast<uint32_t>(over_row(record, thread, rank, [](uint64_t a, uint64_t b) { return a < b ? a : b; }));
}

SPARKLE_DEVICE uint32_t* part_of(const RowsRecord& record, uint32_t part, uint32_t row) {
  return static_cast<uint32_t*>(record.work) + part * record.rows + row;
}

template <class Key>
SPARKLE_DEVICE void best_of_part(const RowsRecord& record, bool alone) {
  const RowOfThread thread(record);
  const uint32_t first = block_y() * record.part_length, rest = record.elements - first;
  const uint32_t rank = best_rank<Key>(record, thread, first, first + (rest < record.part_length ? rest : record.part_length),
                                       [](uint32_t i) { return i; });
  if (!thread.valid(record) || thread.place > 0) return;
  if (alone) RankedRow(thread).put<Key>(record, 0, rank);
  else store_global(part_of(record, block_y(), thread.row), rank_of(record, rank));
}

template <class Key>
SPARKLE_DEVICE void best_of_parts(const RowsRecord& record) {
  const RowOfThread thread(record);
  const uint32_t own = thread.valid(record) ? thread.row : record.rows - 1;
  const uint32_t rank =
      best_rank<Key>(record, thread, 0, record.own[0], [&](uint32_t part) { return load_global(part_of(record, part, own)); });
  if (thread.valid(record) && thread.place == 0) RankedRow(thread).put<Key>(record, 0, rank);
}

}  // namespace

SPARKLE_KERNEL(sparkle_top_k_best_4, RowsRecord, kRowsThreads, 8) { best_of_part<uint32_t>(record, true); }
SPARKLE_KERNEL(sparkle_top_k_best_8, RowsRecord, kRowsThreads, 8) { best_of_part<uint64_t>(record, true); }
SPARKLE_KERNEL(sparkle_top_k_parts_4, RowsRecord, kRowsThreads, 8) { best_of_part<uint32_t>(record, false); }
SPARKLE_KERNEL(sparkle_top_k_parts_8, RowsRecord, kRowsThreads, 8) { best_of_part<uint64_t>(record, false); }
SPARKLE_KERNEL(sparkle_top_k_of_parts_4, RowsRecord, kRowsThreads, 8) { best_of_parts<uint32_t>(record); }
SPARKLE_KERNEL(sparkle_top_k_of_parts_8, RowsRecord, kRowsThreads, 8) { best_of_parts<uint64_t>(record); }
