// What the register tile (gemm_tile-inl.h) does before and after its products: partial sums in and out, the fast form of the
// epilogue, whole vectors stored to y. gemm_finish-inl.h has the general form. Compiled once per target.
#if defined(SPARKLE_GEMM_EPILOGUE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARKLE_GEMM_EPILOGUE_INL_H_
#undef SPARKLE_GEMM_EPILOGUE_INL_H_
#else
#define SPARKLE_GEMM_EPILOGUE_INL_H_
#endif

#include "backends/cpu/gemm/gemm_tile.h"
#include "backends/cpu/register_tile-inl.h"
#include "backends/cpu/simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD

template <int kRows, int kVectors>
HWY_INLINE void load_partial(RegisterTile<kRows, kVectors> sums, const float* HWY_RESTRICT partial) {
  sums.each([&](Floats& sum, int r, int v)
                SPARKLE_INLINED { sum = hn::LoadU(FloatTag(), partial + (r * kVectors + v) * float_lanes()); });
}

template <int kRows, int kVectors>
HWY_INLINE void store_partial(RegisterTile<kRows, kVectors> sums, float* HWY_RESTRICT partial) {
  sums.each([&](Floats& sum, int r, int v)
                SPARKLE_INLINED { hn::StoreU(sum, FloatTag(), partial + (r * kVectors + v) * float_lanes()); });
}

// Scale, bias, residuals, clamp; each part is one branch around the whole tile.
template <int kRows, int kVectors>
HWY_INLINE void finish_in_registers(RegisterTile<kRows, kVectors> sums, const TileCall& call) {
  const FloatTag d;
  const int64_t lanes = float_lanes();
  if (call.scale) {
    sums.each([&](Floats& sum, int, int v) SPARKLE_INLINED { sum = hn::Mul(sum, hn::LoadU(d, call.scale + v * lanes)); });
  }
  sums.each([&](Floats& sum, int, int v) SPARKLE_INLINED { sum = hn::Add(sum, hn::LoadU(d, call.bias + v * lanes)); });
  for (int i = 0; i < call.residuals; ++i) {
    const float* const* residual = call.residual[i];
    const int64_t column = call.column;
    sums.each([&](Floats& sum, int r, int v)
                  SPARKLE_INLINED { sum = hn::Add(sum, hn::LoadU(d, residual[r] + column + v * lanes)); });
  }
  // The sum is the second argument: x86 then hands a NaN on.
  if (call.clamp_below) {
    const Floats low = hn::Set(d, call.low);
    sums.each([&](Floats& sum, int, int) SPARKLE_INLINED { sum = hn::Max(low, sum); });
  }
  if (call.clamp_above) {
    const Floats high = hn::Set(d, call.high);
    sums.each([&](Floats& sum, int, int) SPARKLE_INLINED { sum = hn::Min(high, sum); });
  }
}

template <int kRows, int kVectors>
HWY_INLINE void store_rows(RegisterTile<kRows, kVectors> sums, const TileCall& call) {
  // Addresses first: a store of a vector may alias them, and each would be read again.
  float* y[kRows];
  unrolled<kRows>([&](int r) SPARKLE_INLINED { y[r] = call.y[r] + call.column; });
  sums.each([&](Floats& sum, int r, int v) SPARKLE_INLINED { hn::StoreU(sum, FloatTag(), y[r] + v * float_lanes()); });
}

#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled include guard
