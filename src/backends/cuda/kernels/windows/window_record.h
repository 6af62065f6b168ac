// What the kernels that slide a window over each channel alone are launched with: pooling and depthwise convolutions.
#pragma once

#include "backends/cuda/kernels/gemm_record.h"

namespace sparkle::cuda {

inline constexpr int kWindowThreads = 128;

struct WindowRecord {
  const void* x = nullptr;
  const void* w = nullptr;  // depthwise: filters
  void* y = nullptr;
  int64_t* positions = nullptr;  // pool: of the maxima, or none
  const void* scale = nullptr;
  const void* bias = nullptr;
  const void* residual[2] = {};

  uint32_t count = 0;                                               // threads' worth of outputs: of one channel, or of four
  Divisor channels, d, h, w_size;                                   // of outputs; channels as threads count them
  int32_t x_size[3] = {};                                           // along d,h,w
  int32_t x_strides[4] = {}, y_strides[4] = {}, i_strides[4] = {};  // elements along n,d,h,w
  int32_t x_channel = 1, y_channel = 1, i_channel = 1;
  int32_t filter[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1}, pad[3] = {}, pad_end[3] = {};
  int32_t planes = 0;  // neighbouring threads go along rows, else along channels
  uint8_t type = 0, kind = 0, count_pad = 0;
  int32_t power = 2;

  // Depthwise.
  int32_t w_strides[4] = {};  // elements between filters, and along t,r,s; packed: [tap][filter]
  Divisor multiplier;
  int32_t scale_stride = 0, bias_stride = 0;
  int32_t residual_strides[2][4] = {}, residual_channel[2] = {};
  float alpha = 1, a = 0, b = 0;
  int32_t activation = 0, before = 0, after = 0;
};

}  // namespace sparkle::cuda
