// Folding many floats into one, or many rows into one row: the inner loops of reductions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sparkle::cpu {

enum class Fold : uint8_t {
  sum,
  max,
  min,
  product,
  sum_abs,
  sum_square,
  sum_exp_shifted,     // exp(x - shift)
  sum_square_shifted,  // (x - shift)^2
};
double identity_of(Fold fold);
double combine(Fold fold, double a, double b);

// Rows of `columns` neighbouring floats, `stride` apart, folded into `total` element by element; `shift` is a row or nullptr.
struct ColumnCall {
  const float* x = nullptr;
  int64_t stride = 0, rows = 0;
  float* total = nullptr;
  const float* shift = nullptr;
  size_t columns = 0;
};

struct FoldFunctions {
  float (*row)(const float* x, size_t count, float shift) = nullptr;  // sums in fp32: callers pass blocks and add up in double
  void (*columns)(const ColumnCall&) = nullptr;                       // likewise over the rows
};
// Functions of a unit; all nullptr for a unit without kernels.
FoldFunctions fold_functions(std::string_view unit, Fold fold);

}  // namespace sparkle::cpu
