// Where a batch's operands lie, and which keys a query sees by position.
#pragma once

#include "backends/cuda/kernels/attention/attention_record.h"
#include "backends/cuda/kernels/gemm_index.cuh"
#include "backends/cuda/ptx/matrix.cuh"

namespace sparkle::cuda {

// Elements from the beginning of each operand to those of a batch.
struct AttentionPlaces {
  int64_t v[kAttentionOperands];
};
SPARKLE_DEVICE AttentionPlaces places_of(const AttentionRecord& record, uint32_t batch) {
  AttentionPlaces at = {};
  for (int i = record.axes - 1; i >= 0; --i) {
    const auto index = static_cast<int32_t>(fast_divmod(batch, record.size[i]));
    SPARKLE_UNROLL
    for (int o = 0; o < kAttentionOperands; ++o) at.v[o] += int64_t{index} * record.batch_strides[i][o];
  }
  return at;
}

struct SeenKeys {
  int32_t begin, end;
};
// Neither bound falls from one query to the next.
struct SeenRange {
  int32_t length, offset, left, right, most;
  SPARKLE_DEVICE SeenKeys of(int32_t query) const {
    const int32_t place = query + offset;
    SeenKeys seen{0, length};
    if (left >= 0 && place - left > 0) seen.begin = place - left;
    if (right >= 0 && place + right + 1 < seen.end) seen.end = place + right + 1;
    if (most < seen.end) seen.end = most;
    if (seen.end < 0) seen.end = 0;
    if (seen.begin > seen.end) seen.begin = seen.end;
    return seen;
  }
};
SPARKLE_DEVICE SeenRange seen_range(const AttentionRecord& record, const AttentionPlaces& at) {
  int64_t length = record.keys;
  if (record.at[kLengths] != nullptr)
    length = static_cast<int64_t>(load_global(static_cast<const uint64_t*>(record.at[kLengths]) + at.v[kLengths]));
  SeenRange range;
  range.length = static_cast<int32_t>(length < 0 ? 0 : length > record.keys ? record.keys : length);
  range.offset = record.offset_from_length ? range.length - static_cast<int32_t>(record.queries.size) : record.offset;
  range.left = record.left, range.right = record.right;
  range.most = record.at[kMask] != nullptr && record.mask_keys < record.keys ? record.mask_keys : record.keys;
  return range;
}

// What softmax takes off the exponents of a row once it has seen `largest`, and what that makes of sums until now.
SPARKLE_DEVICE float shift_of(float largest, float factor) { return largest == -INFINITY ? 0 : largest * factor; }
SPARKLE_DEVICE float rescale_of(float largest_before, float shift_before, float shift) {
  return largest_before == -INFINITY ? 0 : exp2_of(shift_before - shift);
}

}  // namespace sparkle::cuda
