#include "backends/cpu/sample/weighted_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/sample/weighted_rows.cc"
#include "backends/cpu/simd.h"
// after simd.h: compiled once per target
#include "backends/cpu/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD
namespace hn = hwy::HWY_NAMESPACE;

// kTail: the last `left` channels of a row.
template <bool kTail>
HWY_INLINE void sum_rows(const WeightedRows& rows, int64_t first, int64_t left) {
  const hn::ScalableTag<float> d;
  const float* x = rows.x + first;
  auto sum = hn::Zero(d);
  for (int t = 0; t < rows.taps; ++t)
    sum = hn::MulAdd(hn::Set(d, rows.weight[t]), load_some<kTail>(d, x + rows.at[t], left), sum);
  store_some<kTail>(sum, d, rows.y + first, left);
}

void sum_weighted_rows(const WeightedRows& rows) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  // Vectors of one or two channels cost more than they do.
  if (rows.count <= 2) {
    for (int64_t i = 0; i < rows.count; ++i) {
      float sum = 0;
      for (int t = 0; t < rows.taps; ++t) sum += rows.weight[t] * rows.x[rows.at[t] + i];
      rows.y[i] = sum;
    }
    return;
  }
  int64_t i = 0;
  for (; i + lanes <= rows.count; i += lanes) sum_rows<false>(rows, i, lanes);
  if (i < rows.count) sum_rows<true>(rows, i, rows.count - i);
}

WeightedRowsFunction find_weighted_rows() { return sum_weighted_rows; }
#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sparkle::cpu {

WeightedRowsFunction weighted_rows(std::string_view unit) {
  const auto find = SPARKLE_PICK(find_weighted_rows, unit);
  return find ? find() : nullptr;
}

}  // namespace sparkle::cpu
#endif
