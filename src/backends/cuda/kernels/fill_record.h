// What sparkle_fill_words is launched with: any number of blocks of kFillThreads.
#pragma once

#include <cstdint>

namespace sparkle::cuda {

inline constexpr int kFillThreads = 256;
struct FillRecord {
  uint32_t* to = nullptr;
  uint64_t count = 0;
  uint32_t value = 0;
};

}  // namespace sparkle::cuda
