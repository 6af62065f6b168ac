// Places of buffers: nothing that lives at the same time overlaps, the arena is as large as it must be and not much larger.
#include "plan/memory/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace sparkle {
namespace {

int64_t rounded(int64_t bytes) { return (bytes + 63) / 64 * 64; }

// The fullest step: no arena can be smaller.
int64_t lower_bound(const std::vector<BufferLife>& buffers) {
  int64_t most = 0;
  for (int step = 0; step < 64; ++step) {
    int64_t sum = 0;
    for (const BufferLife& b : buffers)
      if (b.first <= step && step <= b.last) sum += rounded(b.bytes);
    most = std::max(most, sum);
  }
  return most;
}

TEST(Memory, NoTwoLiveBuffersOverlap) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    std::mt19937_64 rng(seed);
    std::vector<BufferLife> buffers(rng() % 40);
    for (BufferLife& b : buffers) {
      b.bytes = static_cast<int64_t>(rng() % 5000);
      if (rng() % 10 == 0) b.bytes = 0;
      b.first = static_cast<int>(rng() % 50), b.last = b.first + static_cast<int>(rng() % 12);
    }
    const int64_t arena = place_buffers(buffers);
    EXPECT_GE(arena, lower_bound(buffers)) << "seed " << seed;
    int64_t all = 0;
    for (const BufferLife& b : buffers) all += rounded(b.bytes);
    EXPECT_LE(arena, all);
    for (size_t i = 0; i < buffers.size(); ++i) {
      const BufferLife& a = buffers[i];
      EXPECT_EQ(a.offset % 64, 0);
      EXPECT_GE(a.offset, 0);
      EXPECT_LE(a.offset + a.bytes, arena);
      for (size_t j = 0; j < i; ++j) {
        const BufferLife& b = buffers[j];
        if (a.last < b.first || b.last < a.first || a.bytes == 0 || b.bytes == 0) continue;
        EXPECT_TRUE(a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset) << "seed " << seed;
      }
    }
  }
}

TEST(Memory, AChainNeedsItsTwoLargestNeighbours) {
  std::vector<BufferLife> buffers;
  for (int i = 0; i < 20; ++i) buffers.push_back({64 * (1 + i % 5), i, i + 1, 0});
  EXPECT_EQ(place_buffers(buffers), lower_bound(buffers));
  std::vector<BufferLife> none;
  EXPECT_EQ(place_buffers(none), 0);
}

}  // namespace
}  // namespace sparkle
