// The softmax part of attention on one row of scores at a time, one set of functions per math unit.
#pragma once

#include <cstdint>
#include <string_view>

namespace sparkle::cpu {

// One row of scaled scores against a block of keys; the row is padded to whole vectors.
struct ScoreRow {
  float* scores = nullptr;
  int64_t count = 0;            // keys of the block
  int64_t begin = 0, end = 0;   // of which these may be seen
  const float* mask = nullptr;  // added, `count` floats; nullptr: none
  float softcap = 0;            // 0: none
  float* raw = nullptr;         // where the scores are wanted at one of these points, `count` floats; nullptr: nowhere
  float* capped = nullptr;
  float* masked = nullptr;
};

struct AttentionFunctions {
  // Cap and mask in place, what is hidden to -inf; the largest.
  float (*mask)(const ScoreRow& row) = nullptr;
  // Scores to exp(score - largest), in place; their sum.
  float (*exponentials)(float* scores, int64_t count, float largest) = nullptr;
  // exp(score - largest) * factor, in place.
  void (*weights)(float* scores, int64_t count, float largest, float factor) = nullptr;
  // to[i] = from[i] * factor; both may be the same.
  void (*scale)(const float* from, float* to, int64_t count, float factor) = nullptr;
};
// Functions of a unit; all nullptr for a unit without kernels.
AttentionFunctions attention_functions(std::string_view unit);

}  // namespace sparkle::cpu
