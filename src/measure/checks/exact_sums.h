// ExactSums: the sums of an anchor call's products on small whole numbers, in 32-bit integers by plain loops. No rounding: what
// any right kernel gives in any order of its additions is the same number. What benches and tuning compare whole outputs with,
// it shares nothing with the kernels that are compared, and a compiler makes a few billion products a second of it on one core.
#pragma once

#include "algorithms/algorithm.h"
#include "base/system/executor.h"

namespace sparkle {

class ExactSums {
 public:
  // `x` and `w`: the call's first operands as whole numbers in the memory order of their layouts. Their sums stay below 2^31.
  ExactSums(const AnchorCall& call, const std::vector<int16_t>& x, const std::vector<int16_t>& w);
  // Rows are pixels of all images, or rows of all products; columns filters, or columns.
  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  // The sums of some rows, `columns` each, one behind the other.
  void compute(std::span<const int64_t> rows, int32_t* sums) const;

 private:
  void pack_window(const std::vector<int16_t>& x, const std::vector<int16_t>& w);
  void pack_matrices(const std::vector<int16_t>& x, const std::vector<int16_t>& w);
  // What the products of a row and group read of x, in the order of the filters' elements, zeros beyond.
  void gather(int64_t row, int64_t group, int16_t* to) const;
  void gather_window(int64_t row, int64_t group, int16_t* to) const;

  AnchorCall call_;
  int64_t rows_ = 0, columns_ = 0, groups_ = 1, depth_ = 0, padded_ = 0;  // depth_ products each; padded_: in whole vectors
  int64_t matrices_ = 1;                                                  // of the second operand of products
  std::vector<int16_t> x_, w_;  // [group, image, pixel, channel] or rows; [matrix or group, column, padded]
};

}  // namespace sparkle
