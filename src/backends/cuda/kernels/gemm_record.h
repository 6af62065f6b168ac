// GemmRecord: what a kernel of the gemm family is launched with, one text for the host and the device. Windows and dense
// products are one: a row is an output pixel (n,d,h,w), or a row of the left operand as (0,0,0,m); k runs over taps and then
// channels; instances are groups or batch elements.
//
//   y[row, k] = activation(alpha * sum * scale[k] + bias[k] + residuals before) + residuals after
//
// On 8-bit integers (families/integers/integers.h): the sum of (x - x_zero) * (w - w_zero), + bias (32 bits), then, with
// `scale`, clamp(round(float * scale) + y_zero, low, high). What is summed are the bytes as they are, so that products are
// those of the units; what zero points add is a number for each column, and for each row where some w_zero is not 0.
#pragma once

#include <cstdint>

namespace sparkle::cuda {

// Division of numbers below 2^31 by `size` without dividing (backends/vulkan/kernels/divisor.h says why it is exact).
struct Divisor {
  uint32_t size = 1, factor = 0, shift = 0;
};
inline Divisor divisor_of(int64_t size) {
  Divisor d;
  d.size = static_cast<uint32_t>(size < 1 ? 1 : size);
  if (d.size == 1) return d;
  uint32_t bits = 0;
  while ((uint64_t{1} << bits) < d.size) ++bits;
  d.factor = static_cast<uint32_t>(((uint64_t{1} << (31 + bits)) + d.size - 1) / d.size);
  d.shift = bits - 1;
  return d;
}

// Types of elements in memory.
enum class Element : int32_t { f32, f16, bf16, i8, u8, i32 };

struct GemmRecord {
  // Operands. A residual has y's type (8-bit integers take none); scale and bias are f32, the bias of integers is i32.
  const void* x = nullptr;
  const void* w = nullptr;
  void* y = nullptr;
  const float* scale = nullptr;  // none: 1
  const void* bias = nullptr;    // none: 0
  const void* residual[2] = {};  // the first `before` are added before the activation
  const void* padding =
      nullptr;               // 16 bytes that stand for what is outside of the image and behind k: x's zero point; none: zeros
  float* partial = nullptr;  // splits > 1: [instance][tile][split], each as threads hold it: 16 bytes by piece and thread
  uint32_t* counters = nullptr;  // splits > 1: [instance][tile], zero before and after

  // Rows.
  Divisor rows_by[3];           // outputs along d,h,w
  int32_t m = 0, n = 0, k = 0;  // of an instance; k counts what a row of w holds: see w_stride
  int32_t x_size[3] = {};       // inputs along d,h,w
  int32_t x_strides[4] = {};    // elements between neighbours along n,d,h,w
  int32_t x_channel = 1;        // and between channels; other than 1 with the loader of elements alone
  int32_t y_strides[4] = {};
  int32_t y_channel = 1;
  int32_t residual_strides[2][4] = {};
  int32_t residual_channel[2] = {};
  int32_t filter[3] = {1, 1, 1};  // taps along d,h,w
  int32_t stride[3] = {1, 1, 1};
  int32_t dilation[3] = {1, 1, 1};
  int32_t pad[3] = {};   // at the beginning; may be negative
  Divisor filter_by[2];  // taps along h,w
  Divisor channels_by;   // channels of an instance as k counts them

  // w: rows of k elements, a row a filter: [tap d][h][w][channel], channels padded with zeros to 16 bytes for the loader of
  // chunks (rows begin at 16 bytes), as they are for the loader of elements, rows padded with zeros to 16 bytes.
  int32_t w_stride = 0;     // elements between rows
  int32_t w_unrounded = 0;  // products in tf32 by mma.sync: w holds floats that are not rounded to it yet

  // Instances, outermost first; blockIdx.z counts them.
  Divisor instances_by[3];  // of the three innermost
  int32_t x_instance[4] = {}, w_instance[4] = {}, y_instance[4] = {};
  int32_t residual_instance[2][4] = {};
  int32_t channel_instance[4] = {};  // scale and bias move so far

  // The grid: blockIdx.x counts tiles, swaths of `swath` tiles along n one after another; blockIdx.y splits of the sums.
  int32_t tiles_m = 1, tiles_n = 1, swath = 1;
  int32_t splits = 1, split_steps = 0;  // of the tile's k that each adds; 0: all

  // The epilogue.
  float alpha = 1, a = 0, b = 0;
  int32_t activation = 0;         // the number of families/values/activation.h
  int32_t before = 0, after = 0;  // residuals
  Element y_type = Element::f32;
  int32_t vectors =
      0;  // y and residuals: 16 bytes at once (8 elements of a row: n, strides, instances and addresses are multiples)
  // 8-bit integers. Bytes are signed for the units: of x that is u8 registers are flipped, w that was u8 lies 128 less.
  uint32_t x_flip = 0;              // 0x80808080: x is u8
  uint32_t w_unsigned = 0;          // 1: w_zero is of u8
  const void* x_zero = nullptr;     // a byte; none: 0
  const void* w_zero = nullptr;     // bytes, w_zero_stride apart; none: 0
  const void* y_zero = nullptr;     // a byte of y's type; none: 0
  const int32_t* w_sums = nullptr;  // of each row of w as it lies
  // Where what lies outside of the image counts as 0, not as x's zero point (the engine's copies): the sums of all taps above
  // and to the left of one, [r of h's taps + 1][s of w's + 1][row of w], rows of w all `w_rows`. None: no tap is outside.
  const int32_t* w_taps = nullptr;
  int32_t w_rows = 0;
  int32_t scale_stride = 1, bias_stride = 1, w_zero_stride = 0;
  int32_t all_k = 0;  // elements of x that are multiplied for a row, with what stands for those outside and behind k
  int32_t low = 0, high = 0;
};

}  // namespace sparkle::cuda
