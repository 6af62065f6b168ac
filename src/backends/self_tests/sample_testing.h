// Tests that try thousands of cases try one in so many where SPARKLE_TEST_SAMPLE says "SHARE SEED": scripts/test does, with a
// seed that each commit changes. Without it they try all.
#pragma once
#include <cstdio>
#include <cstdlib>

namespace sparkle::testing {

struct Sample {
  unsigned share = 1, first = 0;
  bool takes(unsigned number) const { return number % share == first; }
};

inline Sample sample() {
  unsigned share = 1, seed = 0;
  const char* text = std::getenv("SPARKLE_TEST_SAMPLE");
  if (!text || std::sscanf(text, "%u %u", &share, &seed) != 2 || share == 0) return {};
  return {share, seed % share};
}

}  // namespace sparkle::testing
