// The general epilogue of a tile whose raw sums lie in L1: every activation, residuals of any pitch, columns that end
// inside a vector. Compiled once per target.
#if defined(SPARKLE_GEMM_FINISH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARKLE_GEMM_FINISH_INL_H_
#undef SPARKLE_GEMM_FINISH_INL_H_
#else
#define SPARKLE_GEMM_FINISH_INL_H_
#endif

#include "backends/cpu/gemm/gemm_tile.h"
#include "backends/cpu/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD

// to[0..columns) += from[0], from[pitch], ...
HWY_INLINE void add_row(float* HWY_RESTRICT to, const float* HWY_RESTRICT from, int64_t pitch, int64_t columns) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  if (pitch == 1)
    for (; i + lanes <= columns; i += lanes) hn::StoreU(hn::Add(hn::LoadU(d, to + i), hn::LoadU(d, from + i)), d, to + i);
  for (; i < columns; ++i) to[i] += from[i * pitch];
}

HWY_NOINLINE inline void finish_tile(const FinishCall& call) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int r = 0; r < call.rows; ++r) {
    float* row = call.sums + r * call.sums_pitch;
    for (int64_t i = 0; i < call.columns; i += lanes) {
      auto v = hn::LoadU(d, row + i);
      if (call.scale) v = hn::Mul(v, hn::LoadU(d, call.scale + i));
      hn::StoreU(hn::Add(v, hn::LoadU(d, call.bias + i)), d, row + i);
    }
    for (int i = 0; i < call.residuals_before; ++i) add_row(row, call.residual[i][r], call.residual_pitch[i], call.columns);
  }
  simd_math::activate_strip(call.activation, call.activation_a, call.activation_b, call.sums,
                            static_cast<size_t>(call.rows * call.sums_pitch));
  for (int r = 0; r < call.rows; ++r) {
    float* HWY_RESTRICT row = call.sums + r * call.sums_pitch;
    float* HWY_RESTRICT y = call.y[r];
    for (int i = call.residuals_before; i < call.residuals_before + call.residuals_after; ++i)
      add_row(row, call.residual[i][r], call.residual_pitch[i], call.columns);
    int64_t i = 0;
    for (; i + lanes <= call.columns; i += lanes) hn::StoreU(hn::LoadU(d, row + i), d, y + i);
    for (; i < call.columns; ++i) y[i] = row[i];
  }
}

#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled include guard
