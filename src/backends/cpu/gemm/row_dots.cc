// Products with a handful of columns: an output is a dot product along k, vectors of a row times vectors of the column, added
// over the lanes at the end. A register tile would multiply whole vectors of columns that there are not. A call makes one
// column of up to six rows: seven loads for six products a step, while the rows stay in L1 for the next column.
#include "backends/cpu/gemm/gemm_tile.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/gemm/row_dots.cc"
#include "backends/cpu/simd/simd.h"
// must come after simd.h
#include "backends/cpu/gemm/gemm_finish-inl.h"
#include "backends/cpu/register_tile-inl.h"
#include "backends/cpu/simd/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD

// One number behind its sum, in the order of the fast epilogue (gemm_epilogue-inl.h). Comparisons are such that NaN stays.
HWY_INLINE float finished(float sum, const TileCall& call, int row) {
  if (call.scale) sum *= call.scale[0];
  sum += call.bias[0];
  for (int i = 0; i < call.residuals; ++i) sum += call.residual[i][row][call.column];
  if (call.clamp_below) sum = sum < call.low ? call.low : sum;
  if (call.clamp_above) sum = sum > call.high ? call.high : sum;
  return sum;
}

template <int kRows>
void row_dots(const TileCall& call) {
  const FloatTag d;
  const int64_t lanes = float_lanes();
  RegisterTile<kRows, 1>::with_zeros([&](auto sums) SPARKLE_INLINED {
    for (const GemmRun *run = call.runs, *end = run + call.run_count; run != end; ++run) {
      const float* HWY_RESTRICT b = static_cast<const float*>(call.b) + run->k;
      const float* a[kRows];
      unrolled<kRows>([&](int r) SPARKLE_INLINED { a[r] = call.a[r] + run->a; });
      int64_t i = 0;
      for (; i + lanes <= run->length; i += lanes) {
        const Floats weights = hn::LoadU(d, b + i);
        sums.each([&](Floats& sum, int r, int) SPARKLE_INLINED { sum = hn::MulAdd(hn::LoadU(d, a[r] + i), weights, sum); });
      }
      if (const int64_t rest = run->length - i; rest > 0) {
        const Floats weights = load_lanes(d, b + i, rest);
        sums.each([&](Floats& sum, int r, int)
                      SPARKLE_INLINED { sum = hn::MulAdd(load_lanes(d, a[r] + i, rest), weights, sum); });
      }
    }
    float totals[kRows];
    sums.each([&](Floats& sum, int r, int) SPARKLE_INLINED { totals[r] = hn::GetLane(hn::SumOfLanes(d, sum)); });
    for (int r = 0; r < kRows; ++r) {
      if (!call.begin_at_zero) totals[r] += call.partial[r];
      if (call.finish) {
        call.y[r][call.column] = finished(totals[r], call, r);
      } else {
        call.partial[r] = totals[r];
      }
    }
  });
}

const TileKernels* row_dot_kernels() {
  static const TileKernels kernels = [] {
    TileKernels k;
    k.lanes = k.max_vectors = 1;
    const TileKernel tiles[] = {row_dots<1>, row_dots<2>, row_dots<3>, row_dots<4>, row_dots<5>, row_dots<6>};
    for (auto& level : k.tile)
      for (int r = 0; r < kMaxTileRows; ++r) level[r][0] = tiles[r];
    k.finish = finish_tile;
    return k;
  }();
  return &kernels;
}
#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sparkle::cpu {
const TileKernels* row_dot_kernels_of(std::string_view unit) {
  const auto make = SPARKLE_PICK(row_dot_kernels, unit);
  return make ? make() : nullptr;
}
}  // namespace sparkle::cpu
#endif
