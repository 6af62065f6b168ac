// Softmax over one row of neighbouring floats, or over many interleaved rows at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sparkle::cpu {

struct SoftmaxFunctions {
  // y[i] = softmax over count neighbours; x may be y.
  void (*row)(const float* x, float* y, size_t count, bool logarithm) = nullptr;
  // `rows` such rows, x_stride and y_stride floats apart.
  void (*rows)(const float* x, int64_t x_stride, float* y, int64_t y_stride, size_t count, size_t rows,
               bool logarithm) = nullptr;
  // `columns` (at most kSoftmaxColumns) rows side by side: element i of column c at x[i * x_stride + c].
  void (*columns)(const float* x, int64_t x_stride, float* y, int64_t y_stride, size_t count, size_t columns,
                  bool logarithm) = nullptr;
};
inline constexpr size_t kSoftmaxColumns = 256;

SoftmaxFunctions softmax_functions(std::string_view unit);

}  // namespace sparkle::cpu
