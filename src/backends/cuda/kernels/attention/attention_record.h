// What the kernels of attention are launched with: a block for each query of each batch, or for each block of queries.
#pragma once

#include "backends/cuda/kernels/gemm_record.h"

namespace sparkle::cuda {

inline constexpr int kAttentionThreads = 128, kAttentionAxes = 6;
enum AttentionOperand : int { kQueries, kKeys, kValues, kMask, kLengths, kResult, kScores, kAttentionOperands };

struct AttentionRecord {
  const void* at[kAttentionOperands] = {};  // those that are not there: nullptr
  int32_t axes = 0;                         // of batches, the innermost last
  Divisor size[kAttentionAxes];
  int32_t batch_strides[kAttentionAxes][kAttentionOperands] = {};
  int32_t row_strides[kAttentionOperands] = {}, column_strides[kAttentionOperands] = {};
  uint8_t type[kAttentionOperands] = {};
  Divisor queries;
  int32_t keys = 0, depth = 0, columns = 0, mask_keys = 0;
  float scale = 1, softcap = 0;
  int32_t left = -1, right = -1, offset = 0;
  uint8_t offset_from_length = 0, unseen_is_nan = 0, scores = 0;  // scores: the number of ScoreOutput

  // Blocks of queries.
  Divisor blocks;                              // of a batch
  uint8_t in_chunks[kAttentionOperands] = {};  // rows are runs of whole 16 bytes that begin at such
  // Where nothing but `scale`, above zero, stands between products and exponentials, these take it too: 2^(factor * product).
  uint8_t is_linear = 0;
  float factor = 1;
};

}  // namespace sparkle::cuda
