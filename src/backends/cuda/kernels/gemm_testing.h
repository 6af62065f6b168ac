// Random convolutions for the kernels of the gemm family: operands as a kernel is given them, and what comes out in double
// precision.
#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "backends/cuda/kernels/gemm_record.h"
#include "backends/cuda/kernels/gemm_variants.h"

namespace sparkle::cuda {

struct Convolution {
  int n = 1, groups = 1, c = 8, k = 8;  // channels and filters of a group
  std::array<int, 3> size{1, 1, 1}, filter{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1}, pad{0, 0, 0}, out{1, 1, 1};
  int gap_x = 0, gap_y = 0;                          // channels between pixels that belong to nobody
  bool scale = false, bias = false, planes = false;  // planes: x and y are NCHW
  int before = 0, after = 0, activation = 0;
  float alpha = 1, a = 0, b = 0;
  Element y_type = Element::f32;
  bool x_unsigned = false;
  bool w_unsigned = false;                 // as w was before it was laid out for kernels, 128 less
  int x_zero = 0, w_zero = 0, y_zero = 0;  // w_zero: of the first filter; others follow by 3
  int splits = 1, swath = 1;
  bool positive = false;  // all operands: sums grow
  std::string text() const;
};
// Sizes that fit no tile; channels in multiples of `channels` elements.
Convolution random_convolution(std::mt19937& random, int channels);

// Launches the variant in the model on random operands: the first difference beyond what the sum's length and the types allow,
// or the model's fault; empty where all is well. The seed is of the operands and of the order of threads.
std::string run_in_model(const GemmVariant& variant, const Convolution& convolution, uint32_t seed);

}  // namespace sparkle::cuda
