// Integer indices along an axis, as gather and scatter read them: i32 or i64, negative ones count from the end.
#pragma once

#include <string>

#include "base/result.h"
#include "base/tensor.h"

namespace sparkle {

// ONNX wants an index within [-size, size). Kernels take whatever comes to an element of the axis, so that no memory outside of
// the tensor is ever touched; that the data keeps to the rule is checked before they run.
int64_t clamped_index(int64_t index, int64_t size);

inline bool is_index_type(DType type) { return type == DType::i32 || type == DType::i64; }
inline int64_t load_index(DType type, const std::byte* from) {
  return type == DType::i64 ? *reinterpret_cast<const int64_t*>(from) : *reinterpret_cast<const int32_t*>(from);
}

// bad_input for an index outside of [-size, size) along `axis`, which is element `at` of the indices.
Error index_outside(int64_t index, const Dims& at, int axis, int64_t size);
// bad_input naming the first such index ("index 7 at 0x2 lies outside of axis 1 of size 5").
Status check_indices(const TensorView& indices, int64_t size, int axis);
// The same for tuples: the last axis of `indices` holds one index for each of x's axes from `first` on.
Status check_tuples(const TensorView& indices, const Dims& x, int first);

}  // namespace sparkle
