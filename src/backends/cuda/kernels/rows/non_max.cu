// Non-maximum suppression. sparkle_non_max_pick: the boxes that a class of an image keeps, best first, a block each; every round
// strikes out what overlaps the box that was taken last and finds the best of what is left. sparkle_non_max_starts: where the
// rows of each class begin, one block. sparkle_non_max_rows: image, class and box, a thread for each box that could have been
// kept and for each row. Compiled with products and sums rounded each, as families/non_max/non_max.cc has them: which boxes
// overlap by the very limit is the same everywhere.
#include "backends/cuda/kernels/rows/non_max_record.h"
#include "backends/cuda/ptx/matrix.cuh"
#include "backends/cuda/ptx/memory.cuh"
#include "backends/cuda/ptx/threads.cuh"

using namespace sparkle::cuda;

namespace {

constexpr uint32_t kThreads = kNonMaxBlock, kWarps = kThreads / 32, kNoBox = 0xffffffffu;

struct Box {
  float top, left, bottom, right;
};
// NaN is passed on as std::min and std::max do.
SPARKLE_DEVICE float least(float a, float b) { return b < a ? b : a; }
SPARKLE_DEVICE float largest(float a, float b) { return a < b ? b : a; }

SPARKLE_DEVICE Box box_at(const NonMaxRecord& record, uint32_t image, uint32_t i) {
  const float* from = record.boxes + (int64_t{image} * record.box[0] + int64_t{i} * record.box[1]);
  float v[4];
  SPARKLE_UNROLL
  for (int k = 0; k < 4; ++k) v[k] = load_global(from + int64_t{k} * record.box[2]);
  if (!record.centers) return {least(v[0], v[2]), least(v[1], v[3]), largest(v[0], v[2]), largest(v[1], v[3])};
  const float half_width = v[2] / 2, half_height = v[3] / 2;
  return {v[1] - half_height, v[0] - half_width, v[1] + half_height, v[0] + half_width};
}
SPARKLE_DEVICE bool overlaps(const Box& a, const Box& b, float overlap) {
  const float height = least(a.bottom, b.bottom) - largest(a.top, b.top);
  const float width = least(a.right, b.right) - largest(a.left, b.left);
  if (!(height > 0) || !(width > 0)) return false;
  const float common = height * width;
  const float area_a = (a.bottom - a.top) * (a.right - a.left), area_b = (b.bottom - b.top) * (b.right - b.left);
  const float joined = area_a + area_b - common;
  return joined > 0 && common / joined > overlap;
}

SPARKLE_DEVICE uint32_t lowest_bit(uint32_t word) {
#ifdef __CUDACC__
  return static_cast<uint32_t>(__ffs(static_cast<int>(word)) - 1);
#else
  return static_cast<uint32_t>(__builtin_ctz(word));
#endif
}

struct Candidate {
  float score = 0;
  uint32_t place = kNoBox;
};
// Of equal scores the lower box.
SPARKLE_DEVICE bool is_better(const Candidate& a, const Candidate& b) {
  if (a.place == kNoBox || b.place == kNoBox) return a.place != kNoBox;
  return a.score > b.score || (a.score == b.score && a.place < b.place);
}
// The best of all threads', in each of them. Rounds take turns with two places in shared memory: who reads the one of this round
// has not read the next one's, without which nobody comes to write here again.
SPARKLE_DEVICE Candidate best_of_block(Candidate best, uint32_t round) {
  SPARKLE_UNROLL
  for (uint32_t mask = 16; mask > 0; mask /= 2) {
    const Candidate other{float_of(shuffle_xor(bits_of(best.score), mask)), shuffle_xor(best.place, mask)};
    if (is_better(other, best)) best = other;
  }
  const SharedAddress base = shared_base() + (round & 1) * (8 * kWarps);
  if (lane_id() == 0) store_shared_8(base + 8 * warp_id(), bits_of(best.score), best.place);
  sync_block();
  SPARKLE_UNROLL
  for (uint32_t warp = 0; warp < kWarps; ++warp) {
    const Candidate other{float_of(load_shared_4(base + 8 * warp)), load_shared_4(base + 8 * warp + 4)};
    if (is_better(other, best)) best = other;
  }
  return best;
}

// Image, class and box; -1 each of a row that is none.
SPARKLE_DEVICE void put_row(const NonMaxRecord& record, uint32_t row, int64_t image, int64_t number, int64_t box) {
  int64_t* to = record.rows + int64_t{row} * record.row[0];
  store_global(to, image);
  store_global(to + record.row[1], number);
  store_global(to + 2 * int64_t{record.row[1]}, box);
}

}  // namespace

SPARKLE_KERNEL(sparkle_non_max_pick, NonMaxRecord, kNonMaxBlock, 4) {
  const uint32_t task = block_x(), thread = thread_id(), image = task / record.classes;
  uint32_t* const bits = record.work + (record.out + task * record.words * kThreads + thread);
  const float* const scores =
      record.scores + (int64_t{image} * record.score[0] + int64_t{task - image * record.classes} * record.score[1]);
  Box box{};
  uint32_t kept = 0, taken = kNoBox;
  while (kept < record.most) {
    Candidate best;
    for (uint32_t word = 0; word < record.words; ++word) {
      const uint32_t first = word * 32 * kThreads + thread;  // this thread's boxes lie a block apart
      uint32_t out = 0;
      if (kept > 0) {
        out = load_own(bits + word * kThreads);
      } else if (first + 31 * kThreads >= record.count) {  // boxes that there are not
        const uint32_t there = first < record.count ? (record.count - first + kThreads - 1) / kThreads : 0;
        out = there < 32 ? 0xffffffffu << there : 0;
      }
      for (uint32_t left = ~out; left != 0; left &= left - 1) {
        const uint32_t bit = lowest_bit(left), i = first + bit * kThreads;
        const Candidate own{load_global(scores + int64_t{i} * record.score[2]), i};
        // A score that is NaN is no score.
        const bool scored = record.has_threshold ? own.score > record.threshold : own.score == own.score;
        if (kept == 0 ? !scored : i == taken || overlaps(box_at(record, image, i), box, record.overlap)) out |= 1u << bit;
        else if (is_better(own, best)) best = own;
      }
      store_global(bits + word * kThreads, out);
    }
    best = best_of_block(best, kept);
    taken = best.place;
    if (taken == kNoBox) break;
    if (thread == 0) store_global(record.work + (record.kept + task * record.most + kept), taken);
    box = box_at(record, image, taken);
    ++kept;
  }
  if (thread == 0) store_global(record.work + task, kept);
}

SPARKLE_KERNEL(sparkle_non_max_starts, NonMaxRecord, kNonMaxBlock, 1) {
  const uint32_t thread = thread_id();
  const SharedAddress sums = shared_base();
  uint32_t before = 0;
  for (uint32_t first = 0; first < record.tasks; first += kThreads) {
    const uint32_t task = first + thread, own = task < record.tasks ? load_own(record.work + task) : 0;
    uint32_t sum = own;
    store_shared_4(sums + 4 * thread, sum);
    sync_block();
    for (uint32_t step = 1; step < kThreads; step *= 2) {
      const uint32_t other = thread >= step ? load_shared_4(sums + 4 * (thread - step)) : 0;
      sync_block();
      sum += other;
      store_shared_4(sums + 4 * thread, sum);
      sync_block();
    }
    if (task < record.tasks) store_global(record.work + task, before + sum - own);
    before += load_shared_4(sums + 4 * (kThreads - 1));
    sync_block();
  }
  if (thread == 0) store_global(record.work + record.tasks, before);
}

SPARKLE_KERNEL(sparkle_non_max_rows, NonMaxRecord, kNonMaxBlock, 8) {
  const uint32_t i = block_x() * kThreads + thread_id();
  if (i < record.tasks * record.most) {
    const uint32_t task = i / record.most, row = load_global(record.work + task) + (i - task * record.most);
    if (row < load_global(record.work + (task + 1)))
      put_row(record, row, task / record.classes, task % record.classes, load_global(record.work + (record.kept + i)));
  }
  if (i < record.row_count && i >= load_global(record.work + record.tasks)) put_row(record, i, -1, -1, -1);
}
