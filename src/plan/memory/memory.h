// Memory: every arena buffer gets a place in one arena; buffers whose lives do not meet may share bytes.
#pragma once

#include <cstdint>
#include <vector>

namespace sparkle {

struct BufferLife {
  int64_t bytes = 0;
  int first = 0, last = 0;  // steps, inclusive
  int64_t offset = 0;       // result, a multiple of 64
};

// Fills the offsets, returns the arena's size. Largest first, each at the lowest gap that is free during its life: within a few
// percent of the lower bound (the fullest step) on networks.
int64_t place_buffers(std::vector<BufferLife>& buffers);

}  // namespace sparkle
