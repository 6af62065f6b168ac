// LayerCheck: whether a layer's output is right, for everything that is timed or chosen by its time. Operands of whole numbers
// (times a power of two), of seeds that no other layer has and no other run of the program; the whole output, wiped before, is
// compared with sums of integers that no kernel has a part in (ExactSums). Sums of fp32 are exact on such numbers in any order,
// sums of kShortRun products in f16 too, so gemm and direct must give the same to the bit, transforms and narrow types what
// they promise. docs/decisions/0019.
#pragma once

#include "measure/checks/exact_sums.h"

namespace sparkle {

// What was looked at.
struct Checked {
  bool exact = true;              // equal to the bit; else within `bound` of the largest output
  double bound = 0;               // the largest that was allowed
  double error = 0;               // the largest that was found, where not exact
  int64_t rows = 0, of_rows = 0;  // pixels or rows of products: the same where the output was compared whole
  int times = 0;                  // each on new operands: before what is timed and after it
  uint64_t seed = 0;              // of the first operands
  bool whole() const { return rows == of_rows; }
  void add(const Checked& other);
};
// "whole output exact, 2 times, seed 7", "4096 of 64516 rows within 5e-05, 2 times, seed 7"; "not compared".
std::string to_text(const Checked& checked);

// A seed for the operands of one layer: of `base`, or of the program's own, drawn when it began, where that is 0. Another one
// for each problem, and each time that it is asked for; the same ones in the same order whatever else the process measures.
uint64_t next_seed(uint64_t base, const Problem& problem);
// What `base` stands for.
uint64_t base_seed(uint64_t base);
// Of one operand: another one for each.
uint64_t seed_of(uint64_t seed, size_t operand);

// What rounding to the type of an output may be, as a share of the largest: 0 for f32.
double rounding_of(DType type);

class LayerCheck {
 public:
  // Products that a check computes again, a few seconds on one core; where a whole output has more, rows are drawn.
  static constexpr double kMostProducts = 5e10;
  // Errors: out_of_memory. `weights`: the seed of all operands but the first, where several checks share them.
  static Result<std::unique_ptr<LayerCheck>> make(const AnchorCall& call, uint64_t seed, uint64_t weights, Executor& executor,
                                                  double most_products = kMostProducts);
  // In the memory order of their layouts.
  const std::vector<HostTensor>& inputs() const { return inputs_; }
  // Looks at an output of these operands, laid out like the call's, in f32: all of it, or all of it for what was never written
  // and some rows for what was, where there are more products than `most_products`. `bound`: 0 for sums that must be exact,
  // else the share of the largest output that one may be off by. Errors: internal; the sentence begins with `who`.
  Status accept(const float* y, double bound, const std::string& who, Checked& checked) const;
  // What an algorithm with this bound of errors may be off by; 0 where its results must be exact.
  double bound_of(double error, double accuracy) const;

 private:
  LayerCheck(const AnchorCall& call, uint64_t seed) : call_(call), seed_(seed) {}
  Status prepare(uint64_t weights, Executor& executor, double most_products);
  void finish_row(int64_t row, const int32_t* sums, float* y) const;

  AnchorCall call_;
  uint64_t seed_;
  std::vector<HostTensor> inputs_;
  double unit_ = 1;    // of the products
  bool exact_ = true;  // whether fp32 holds every sum and what follows it
  double largest_ = 0;
  std::vector<int64_t> rows_;  // that are compared
  std::vector<float> wanted_;  // their outputs
};

// Whether an output was written everywhere: wiped memory is NaN in all float types. Errors: internal.
Status all_written(const AnchorCall& call, const float* y, const std::string& who);

}  // namespace sparkle
