// What sparkle_stall is launched with: one thread.
#pragma once

#include <cstdint>

namespace sparkle::cuda {

struct StallRecord {
  uint64_t nanoseconds = 0;
};

}  // namespace sparkle::cuda
