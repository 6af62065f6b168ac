// FewRecord: what the kernels for planes of a few channels are launched with. A block takes bands of rows of an image, one
// after another: band b of image i is item i * bands + b. Strides are in elements; columns lie side by side in x and y.
#pragma once

#include "backends/cuda/kernels/gemm_record.h"

namespace sparkle::cuda {

inline constexpr int kFewThreads = 128, kFewMostChunks = 28;

// How two columns of y are stored: at once where addresses are multiples of both.
enum class FewStores : int32_t { fp32_pairs, fp16_pairs, apart };

struct FewRecord {
  const void* x = nullptr;
  const void* w = nullptr;
  void* y = nullptr;
  const float* scale = nullptr;  // none: 1
  const float* bias = nullptr;   // none: 0
  int32_t in_fp16 = 0;           // x, w and y are fp16, else fp32

  int32_t items = 0;
  Divisor bands_by;
  int32_t rows = 0, all_rows = 0, columns = 0;  // outputs of a band, and of an image
  Divisor pairs_by;                             // of a row: two columns
  // Planes of one channel: stretches of walk_rows (even, at most a band's) in twos, so many down a band.
  int32_t walks = 0, walk_rows = 0;
  int32_t y_image = 0, y_map = 0, y_row = 0;
  FewStores y_stores = FewStores::apart;

  int32_t height = 0, width = 0, channels = 0, pad_h = 0, pad_w = 0;
  int32_t x_image = 0, x_channel = 0, x_row = 0;
  int32_t by_copies = 0;  // 16 bytes at once, rows behind one another
  // A band in shared memory: rows of `words` of two columns, channels plane_bytes apart; behind them the same in x's own type,
  // as it comes by copies, then filters.
  int32_t in_rows = 0, plane_bytes = 0, image_bytes = 0, staged_bytes = 0;
  Divisor words_by, in_rows_by;

  int32_t filters = 0, filter_rows = 0, filter_columns = 0;
  int32_t w_map = 0, w_channel = 0, w_row = 0, w_column = 0;
  // Bytes from an output's first input to what each eight of k multiply: rows of the filter, channel by channel; 0 behind the
  // last.
  int32_t chunks[kFewMostChunks] = {};

  float alpha = 1, a = 0, b = 0;
  int32_t activation = 0;
};

}  // namespace sparkle::cuda
