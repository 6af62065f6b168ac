#include "backends/cpu/sample/weighted_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/sample/weighted_rows.cc"
#include "backends/cpu/simd/simd.h"
// after simd.h: compiled once per target
#include "backends/cpu/simd/vector_steps-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD
namespace hn = hwy::HWY_NAMESPACE;

void sum_weighted_rows(const WeightedRows& rows) {
  const hn::ScalableTag<float> d;
  // Vectors of one or two channels cost more than they do.
  if (rows.count <= 2) {
    for (int64_t i = 0; i < rows.count; ++i) {
      float sum = 0;
      for (int t = 0; t < rows.taps; ++t) sum += rows.weight[t] * rows.x[rows.at[t] + i];
      rows.y[i] = sum;
    }
    return;
  }
  each_vector_and_tail(d, rows.count, [&](auto tail, int64_t first, int64_t left) HWY_ATTR {
    const float* x = rows.x + first;
    auto sum = hn::Zero(d);
    for (int t = 0; t < rows.taps; ++t)
      sum = hn::MulAdd(hn::Set(d, rows.weight[t]), load_some<tail()>(d, x + rows.at[t], left), sum);
    store_some<tail()>(sum, d, rows.y + first, left);
  });
}
#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sparkle::cpu {

WeightedRowsFunction weighted_rows(std::string_view unit) { return SPARKLE_PICK(sum_weighted_rows, unit); }

}  // namespace sparkle::cpu
#endif
