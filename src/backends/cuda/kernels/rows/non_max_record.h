// What the kernels of non-maximum suppression are launched with. In the workspace, in words of 32 bits
// (families/non_max/non_max_gpu.h): how many boxes each task (a class of an image) has kept, then where its rows begin; which
// boxes; and a bit for each box that is out, 32 boxes of a thread to a word.
#pragma once

#include <cstdint>

namespace sparkle::cuda {

inline constexpr int kNonMaxBlock = 256;  // threads

struct NonMaxRecord {
  const float* boxes = nullptr;
  const float* scores = nullptr;
  int64_t* rows = nullptr;
  uint32_t* work = nullptr;
  uint32_t tasks = 0, classes = 1, count = 0, most = 0, row_count = 0, words = 0;
  uint32_t kept = 0, out = 0;  // places in the workspace
  float overlap = 0, threshold = 0;
  int32_t box[3] = {}, score[3] = {}, row[2] = {};  // strides
  uint8_t centers = 0, has_threshold = 0;
};

}  // namespace sparkle::cuda
