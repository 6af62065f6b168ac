// A pointwise program over one row of elements, computed in a type other than f32. One definition (typed_row-inl.h), compiled
// once per type in typed_row_*.cc.
#pragma once

#include <span>

#include "families/pointwise/pointwise.h"

namespace sparkle::cpu {

inline constexpr int64_t kTypedRow = 256;  // elements at most: all values of a longer program stay in L1 or L2

struct TypedOperand {
  DType type = DType::f64;
  std::byte* data = nullptr;  // the row's first element
  int64_t stride = 0;         // in elements
};

struct TypedRow {
  const PointwiseParams* params = nullptr;
  std::span<const TypedOperand> inputs;
  TypedOperand output;
  int64_t count = 0;
  std::byte* scratch = nullptr;  // typed_scratch() bytes, aligned for T
};

// A strip per operand and instruction.
constexpr int64_t typed_scratch(const PointwiseParams& params) {
  return (params.inputs + static_cast<int64_t>(params.program.size())) * kTypedRow * 8;
}

template <class T>
void typed_row(const TypedRow& row);

}  // namespace sparkle::cpu
