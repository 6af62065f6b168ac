// Matrix products of integers by definition: sums modulo 2^64, which agree with those modulo the type's own size, so that the
// result wraps around as the type does. Factors other than 1 are applied in double and truncated.
#include <cmath>

#include "families/values/convert.h"
#include "families/gemm/gemm_family.h"
#include "families/loops/walk.h"

namespace sparkle {
namespace {

// Element of `view` at the output's index, axes aligned at the end; axis `replaced` (counted from the end) has index `k`.
template <class T>
T at_index(const TensorView& view, const Dims& at, int replaced, int64_t k) {
  int64_t place = view.desc.layout.offset;
  const int rank = view.desc.shape.size();
  for (int i = 0; i < rank; ++i) {
    const int from_end = rank - 1 - i, axis = at.size() - 1 - from_end;
    const int64_t index = from_end == replaced ? k : axis < 0 || view.desc.shape[i] == 1 ? 0 : at[axis];
    place += index * view.desc.layout.strides[i];
  }
  return reinterpret_cast<const T*>(view.data)[place];
}

template <class T>
void product(const GemmParams& p, std::span<const TensorView> inputs, const TensorView& y) {
  const int64_t depth = inputs[0].desc.shape.back();
  for_each_index(y.desc.shape, [&](const Dims& at) {
    uint64_t sum = 0;
    for (int64_t k = 0; k < depth; ++k)
      sum += static_cast<uint64_t>(at_index<T>(inputs[0], at, 0, k)) * static_cast<uint64_t>(at_index<T>(inputs[1], at, 1, k));
    if (p.epilogue.alpha != 1)
      sum = static_cast<uint64_t>(converted<T>(p.epilogue.alpha * static_cast<double>(static_cast<T>(sum))));
    for (const TensorView& operand : inputs.subspan(2)) sum += static_cast<uint64_t>(at_index<T>(operand, at, -1, 0));
    const T result = static_cast<T>(sum);
    std::memcpy(element_at(y, at), &result, sizeof result);
  });
}

}  // namespace

void gemm_integers(const GemmParams& p, std::span<const TensorView> inputs, const TensorView& y) {
  with_type(y.desc.dtype, [&]<class T>(T*) {
    if constexpr (std::is_integral_v<T>) product<T>(p, inputs, y);
  });
}

}  // namespace sparkle
