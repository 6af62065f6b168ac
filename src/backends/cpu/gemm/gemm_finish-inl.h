// The general epilogue of a tile whose raw sums lie in L1: every activation, residuals of any stride, columns that end
// inside a vector. Compiled once per target.
#if defined(SPARKLE_GEMM_FINISH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARKLE_GEMM_FINISH_INL_H_
#undef SPARKLE_GEMM_FINISH_INL_H_
#else
#define SPARKLE_GEMM_FINISH_INL_H_
#endif

#include "backends/cpu/gemm/gemm_tile.h"
#include "backends/cpu/register_tile-inl.h"
#include "backends/cpu/simd/lanes-inl.h"
#include "backends/cpu/simd/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD

// from[0], from[stride], ... as a vector of which `count` lanes count.
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> load_residual(D d, const float* HWY_RESTRICT from, int64_t stride, int64_t count) {
  namespace hn = hwy::HWY_NAMESPACE;
  if (HWY_LIKELY(stride == 1)) {
    if (HWY_LIKELY(count == static_cast<int64_t>(hn::Lanes(d)))) return hn::LoadU(d, from);
    return load_lanes(d, from, count);
  }
  HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)] = {};
  for (int64_t i = 0; i < count; ++i) lanes[i] = from[i * stride];
  return hn::Load(d, lanes);
}

// One pass: everything between the raw sums and y happens in registers. kPlain: no scale, no residuals, whole vectors, as most
// layers have it; nothing is asked in the loop then.
template <bool kPlain, class F>
HWY_INLINE void finish_rows(const FinishCall& call, F activate) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), columns = call.columns;
  const int before = kPlain ? 0 : call.residuals_before, all = kPlain ? 0 : before + call.residuals_after;
  const float* HWY_RESTRICT bias = call.bias;
  for (int r = 0; r < call.rows; ++r) {
    const float* HWY_RESTRICT row = call.sums + r * call.sums_stride;
    float* HWY_RESTRICT y = call.y[r];
    for (int64_t i = 0; i < columns; i += lanes) {
      const int64_t count = !kPlain && columns - i < lanes ? columns - i : lanes;
      auto v = hn::LoadU(d, row + i);
      if (!kPlain && call.scale) v = hn::Mul(v, hn::LoadU(d, call.scale + i));
      v = hn::Add(v, hn::LoadU(d, bias + i));
      int at = 0;
      for (; at < before; ++at)
        v = hn::Add(v,
                    load_residual(d, call.residual[at][r] + i * call.residual_strides[at], call.residual_strides[at], count));
      v = activate(d, v);
      for (; at < all; ++at)
        v = hn::Add(v,
                    load_residual(d, call.residual[at][r] + i * call.residual_strides[at], call.residual_strides[at], count));
      if (HWY_LIKELY(count == lanes)) {
        hn::StoreU(v, d, y + i);
      } else {
        store_lanes(v, d, y + i, count);
      }
    }
  }
}

// Rows of so few columns share vectors: a function takes as long of one number as of a vector of them.
inline constexpr int64_t kFewColumns = 4;
template <class F>
HWY_INLINE void finish_few_columns(const FinishCall& call, F activate) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), columns = call.columns;
  const int before = call.residuals_before, all = before + call.residuals_after;
  const auto residual = [&](int at, int r, int64_t i) { return call.residual[at][r][i * call.residual_strides[at]]; };
  HWY_ALIGN float numbers[kMaxCallRows * kFewColumns + kMaxLanes] = {};
  for (int r = 0; r < call.rows; ++r)
    for (int64_t i = 0; i < columns; ++i) {
      float v = call.sums[r * call.sums_stride + i];
      if (call.scale) v *= call.scale[i];
      v += call.bias[i];
      for (int at = 0; at < before; ++at) v += residual(at, r, i);
      numbers[r * columns + i] = v;
    }
  for (int64_t i = 0; i < call.rows * columns; i += lanes) hn::Store(activate(d, hn::Load(d, numbers + i)), d, numbers + i);
  for (int r = 0; r < call.rows; ++r)
    for (int64_t i = 0; i < columns; ++i) {
      float v = numbers[r * columns + i];
      for (int at = before; at < all; ++at) v += residual(at, r, i);
      call.y[r][i] = v;
    }
}

// A loop for each activation: a call for each vector would read its constants anew.
HWY_NOINLINE inline void finish_tile(const FinishCall& call) {
  simd_math::visit_activation(call.activation, call.activation_a, call.activation_b, [&](auto activate) HWY_ATTR {
    if (call.columns <= kFewColumns) {
      finish_few_columns(call, activate);
    } else if (!call.scale && call.residuals_before + call.residuals_after == 0 && call.columns % float_lanes() == 0) {
      finish_rows<true>(call, activate);
    } else {
      finish_rows<false>(call, activate);
    }
  });
}

#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled include guard
