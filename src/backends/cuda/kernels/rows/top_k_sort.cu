// Rows sorted, best first. sparkle_top_k_sort: pieces of rows in shared memory by a bitonic network, several short rows of a
// power of two to a block, or runs of long ones, of which as many entries are kept as can come out. sparkle_top_k_merge: pairs
// of sorted runs made one each: an entry's place is its own number and how many of the other run are better, a thread an entry.
#include "backends/cuda/kernels/rows/top_k.cuh"

using namespace sparkle::cuda;

namespace {

// In shared memory: keys, then ranks.
template <class Key>
struct SortedPiece {
  SharedAddress base = shared_base();
  SPARKLE_DEVICE SharedAddress key(uint32_t i) const { return base + static_cast<uint32_t>(sizeof(Key)) * i; }
  SPARKLE_DEVICE SharedAddress rank(uint32_t i) const {
    return base + static_cast<uint32_t>(sizeof(Key)) * kSortEntries + 4 * i;
  }
  SPARKLE_DEVICE RankedEntry<Key> get(uint32_t i) const {
    RankedEntry<Key> e;
    e.key = load_shared_4(key(i));
    if constexpr (sizeof(Key) == 8) e.key |= Key{load_shared_4(key(i) + 4)} << 32;
    e.rank = load_shared_4(rank(i));
    return e;
  }
  SPARKLE_DEVICE void set(uint32_t i, const RankedEntry<Key>& e) const {
    if constexpr (sizeof(Key) == 8) put_shared(key(i), e.key);
    else store_shared_4(key(i), e.key);
    store_shared_4(rank(i), e.rank);
  }
};

// In the workspace: the keys of all runs, incoming and outgoing, then their ranks.
template <class Key>
struct SortedRuns {
  Key* keys;
  uint32_t* ranks;
  SPARKLE_DEVICE explicit SortedRuns(const RowsRecord& record)
      : keys(static_cast<Key*>(record.work)), ranks(reinterpret_cast<uint32_t*>(keys + record.own[kSortAll])) {}
  SPARKLE_DEVICE RankedEntry<Key> get(uint32_t i) const { return {load_global(keys + i), load_global(ranks + i)}; }
  SPARKLE_DEVICE void set(uint32_t i, const RankedEntry<Key>& e) const {
    store_global(keys + i, e.key);
    store_global(ranks + i, e.rank);
  }
};

template <class Key>
SPARKLE_DEVICE void sort_pieces(const RowsRecord& record) {
  const SortedPiece<Key> piece;
  const uint32_t width = record.own[kSortWidth], runs = record.own[kSortRuns], most = record.own[kSortMost];
  const uint32_t pieces = kSortEntries / width;  // of this block
  for (uint32_t i = thread_id(); i < kSortEntries; i += kRowsThreads) {
    const uint32_t number = block_x() * pieces + i / width, row = number / runs;
    const uint32_t element = (number - row * runs) * width + i % width;
    RankedEntry<Key> entry{0, kNoRank};
    if (row < record.rows && element < record.elements) entry = RankedRow(record, row).entry<Key>(record, element);
    piece.set(i, entry);
  }
  for (uint32_t size = 2; size <= width; size *= 2)
    for (uint32_t apart = size / 2; apart > 0; apart /= 2) {
      sync_block();
      for (uint32_t pair = thread_id(); pair < kSortEntries / 2; pair += kRowsThreads) {
        const uint32_t i = 2 * pair - (pair & (apart - 1)), j = i + apart;
        const RankedEntry<Key> a = piece.get(i), b = piece.get(j);
        const bool best_first = (i & (width - 1) & size) == 0;
        if (is_better(b, a) != best_first) continue;
        piece.set(i, b);
        piece.set(j, a);
      }
    }
  sync_block();
  for (uint32_t i = thread_id(); i < kSortEntries; i += kRowsThreads) {
    const uint32_t number = block_x() * pieces + i / width, row = number / runs, at = i % width;
    if (row >= record.rows || at >= most) continue;
    const RankedEntry<Key> entry = piece.get(i);
    if (runs > 1) SortedRuns<Key>(record).set(record.own[kSortTo] + number * most + at, entry);
    else if (entry.rank != kNoRank) RankedRow(record, row).put<Key>(record, at, entry.rank);
  }
}

template <class Key>
SPARKLE_DEVICE void merge_runs(const RowsRecord& record) {
  const uint32_t thread = block_x() * kRowsThreads + thread_id();
  // Incoming runs: half as wide; one whose partner is missing stays as it is.
  const uint32_t half = record.own[kSortWidth] / 2, k = record.own[kSortK], most_from = k < half ? k : half;
  const uint32_t runs_of_row = (record.elements + half - 1) / half;
  const uint32_t run = thread / most_from, number = thread - run * most_from, row = run / runs_of_row;
  if (row >= record.rows) return;
  const uint32_t own = run - row * runs_of_row, other = own ^ 1u;
  if (number >= record.elements - own * half) return;
  const SortedRuns<Key> runs(record);
  const uint32_t first = record.own[kSortFrom] + row * runs_of_row * most_from;
  const RankedEntry<Key> entry = runs.get(first + own * most_from + number);
  uint32_t better = 0, end = 0;
  if (other < runs_of_row) {
    end = record.elements - other * half;
    if (end > most_from) end = most_from;
  }
  while (better < end) {
    const uint32_t middle = (better + end) / 2;
    if (is_better(runs.get(first + other * most_from + middle), entry)) better = middle + 1;
    else end = middle;
  }
  const uint32_t at = number + better;
  if (at >= record.own[kSortMost]) return;
  if (record.own[kSortRuns] > 1)
    runs.set(record.own[kSortTo] + (row * record.own[kSortRuns] + own / 2) * record.own[kSortMost] + at, entry);
  else RankedRow(record, row).put<Key>(record, at, entry.rank);
}

}  // namespace

SPARKLE_KERNEL(sparkle_top_k_sort_4, RowsRecord, kRowsThreads, 8) { sort_pieces<uint32_t>(record); }
SPARKLE_KERNEL(sparkle_top_k_sort_8, RowsRecord, kRowsThreads, 8) { sort_pieces<uint64_t>(record); }
SPARKLE_KERNEL(sparkle_top_k_merge_4, RowsRecord, kRowsThreads, 8) { merge_runs<uint32_t>(record); }
SPARKLE_KERNEL(sparkle_top_k_merge_8, RowsRecord, kRowsThreads, 8) { merge_runs<uint64_t>(record); }
