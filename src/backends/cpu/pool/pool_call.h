// One run of a pool kernel as plain data: what make_pool prepares and the loops of pool_kernels.cc read.
#pragma once

#include <span>
#include <string_view>

#include "families/pool/pool.h"
#include "families/windows/taps.h"

namespace sparkle::cpu {

// Output rows that the separable loop makes at a time: those whose windows share their middle.
inline constexpr int64_t kPoolRowsPerBlock = 8;

struct PoolCall {
  const float* x = nullptr;
  float* y = nullptr;
  FeatureMap mx, my;
  PoolKind kind = PoolKind::max;
  bool count_pad = false;
  bool squares = false;  // lp: p = 2, else p = 1
  Window window;
  Axis axes[3];
  std::span<const TapRange> columns;       // of axes[2]
  std::span<const float> counted_columns;  // average: elements that count along the columns axis, per output column
  int64_t channels_per_block = 0;          // separable: channels of a task
};

// Elements of a window that an average counts along one axis.
int64_t counted(const Axis& axis, int64_t pad_end, bool count_pad, int64_t output);

// window: output rows [begin,end) of the n * d * h rows of y. separable: blocks [begin,end) of n * d * row blocks * channel
// blocks, with a scratch strip of kPoolRowsPerBlock * w * channels_per_block floats.
using PoolLoop = void (*)(const PoolCall& call, int64_t begin, int64_t end, float* scratch);

PoolLoop pool_window_rows(std::string_view unit);
PoolLoop pool_separable_blocks(std::string_view unit);

}  // namespace sparkle::cpu
