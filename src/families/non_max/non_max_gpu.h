// What lies in the workspace of non-maximum suppression on GPUs, in words of 32 bits: the boxes kept of each task (a class of
// an image) and of all, which boxes, and a bit for every box that is out, in words of each thread's own.
#pragma once

#include <algorithm>

#include "families/non_max/non_max.h"
#include "families/stage.h"

namespace sparkle {

inline constexpr int64_t kNonMaxThreads = 256;  // a task's

struct NonMaxOffsets {
  int64_t tasks = 0, most = 0, words = 0;  // words: bits of a thread
  int64_t kept = 0, out = 0, end = 0;      // where the lists begin
};

inline NonMaxOffsets non_max_offsets(const Stage& stage) {
  const Dims& scores = stage.inputs[1].shape;
  NonMaxOffsets p;
  p.tasks = scores[0] * scores[1];
  p.most = std::clamp<int64_t>(get<NonMaxParams>(stage.params).most, 0, scores[2]);
  p.words = (scores[2] + 32 * kNonMaxThreads - 1) / (32 * kNonMaxThreads);
  p.kept = p.tasks + 1;
  p.out = p.kept + p.tasks * p.most;
  p.end = p.out + p.tasks * p.words * kNonMaxThreads;
  return p;
}

}  // namespace sparkle
