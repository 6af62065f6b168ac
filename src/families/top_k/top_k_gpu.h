// How GPUs sort rows: in pieces of at most kTopKEntries in shared memory, then by merging pairs of runs that lie in the
// workspace.
#pragma once

#include <algorithm>
#include <bit>

#include "families/stage.h"
#include "families/top_k/top_k.h"

namespace sparkle {

inline constexpr int64_t kTopKEntries = 1024;  // that a workgroup sorts

struct TopKRuns {
  int64_t rows = 0, width = 1, runs = 1;  // elements of a piece, a power of two; pieces of a row
  int64_t entries = 0, bytes = 0;         // of all first runs, and of two such lists in the workspace; 0: nothing to merge
};

inline TopKRuns top_k_runs(const Stage& stage) {
  const auto& p = get<TopKParams>(stage.params);
  const TensorDesc& x = stage.inputs[0];
  const int64_t length = std::max<int64_t>(1, x.shape[p.axis]);
  TopKRuns r;
  r.rows = x.elements() / length;
  r.width = std::min(kTopKEntries, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(length))));
  r.runs = (length + r.width - 1) / r.width;
  if (r.runs == 1 || p.k <= 1) return r;
  // An odd run goes on as one that is as wide as merged pairs are.
  r.entries = r.rows * static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(r.runs))) * std::min(p.k, r.width);
  r.bytes = 2 * r.entries * (4 + std::max<int64_t>(4, size_of(x.dtype)));  // a key and a rank each
  return r;
}

}  // namespace sparkle
