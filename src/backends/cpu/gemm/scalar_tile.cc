// The register tiles of gemm_tile.cc with one number in the place of each vector, for measuring what vectors bring: the same
// sums in the same order of loops, the same packing by panels (of `vectors` columns), the same epilogue. CMakeLists.txt keeps
// the compiler from making vectors of it. No plan takes them: `bench --ladder` and `bench --ablate` do, by the unit "scalar".
#include "backends/cpu/gemm/gemm_tile.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/gemm/scalar_tile.cc"
#include "backends/cpu/simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD

// Everything after the sums, in the order of the epilogue's definition.
void finish_scalar(const FinishCall& call) {
  const int before = call.residuals_before, all = before + call.residuals_after;
  for (int r = 0; r < call.rows; ++r)
    for (int64_t i = 0; i < call.columns; ++i) {
      float v = call.sums[r * call.sums_stride + i];
      if (call.scale) v *= call.scale[i];
      v += call.bias[i];
      int at = 0;
      for (; at < before; ++at) v += call.residual[at][r][i * call.residual_strides[at]];
      if (call.activation == Activation::relu) v = v < 0 ? 0 : v;
      else if (call.activation != Activation::none)
        v = static_cast<float>(activate(call.activation, call.activation_a, call.activation_b, v));
      for (; at < all; ++at) v += call.residual[at][r][i * call.residual_strides[at]];
      call.y[r][i] = v;
    }
}

template <int kRows, int kColumns>
void scalar_tile(const TileCall& call) {
  float sums[kRows][kColumns];
  for (int r = 0; r < kRows; ++r)
    for (int c = 0; c < kColumns; ++c) sums[r][c] = call.begin_at_zero ? 0 : call.partial[r * kColumns + c];
  [[maybe_unused]] const char* prefetch = call.prefetch;
  for (const GemmRun *run = call.runs, *end = run + call.run_count; run != end; ++run) {
    const float* HWY_RESTRICT b = static_cast<const float*>(call.b) + run->k * kColumns;
    const float* a[kRows];
    for (int r = 0; r < kRows; ++r) a[r] = call.a[r] + run->a;
    for (int64_t i = 0; i < run->length; ++i, b += kColumns) {
      for (int r = 0; r < kRows; ++r)
        for (int c = 0; c < kColumns; ++c) sums[r][c] = __builtin_fmaf(a[r][i], b[c], sums[r][c]);
      if constexpr (kRows * kColumns >= 18) {
        __builtin_prefetch(prefetch, 0, 3);
        prefetch += call.prefetch_step;
      }
    }
  }
  if (!call.finish) {
    for (int r = 0; r < kRows; ++r)
      for (int c = 0; c < kColumns; ++c) call.partial[r * kColumns + c] = sums[r][c];
    return;
  }
  for (int r = 0; r < kRows; ++r)
    for (int c = 0; c < kColumns; ++c) {
      float v = sums[r][c];
      if (call.scale) v *= call.scale[c];
      v += call.bias[c];
      for (int i = 0; i < call.residuals; ++i) v += call.residual[i][r][call.column + c];
      if (call.clamp_below) v = v < call.low ? call.low : v;
      if (call.clamp_above) v = v > call.high ? call.high : v;
      call.y[r][call.column + c] = v;
    }
}

template <int kRows>
void fill_scalar(TileKernels& k) {
  k.set(kRows, 1, scalar_tile<kRows, 1>), k.set(kRows, 2, scalar_tile<kRows, 2>);
  k.set(kRows, 3, scalar_tile<kRows, 3>), k.set(kRows, 4, scalar_tile<kRows, 4>);
}

const TileKernels* scalar_kernels() {
  static const TileKernels kernels = [] {
    TileKernels k;
    k.lanes = 1;
    k.max_vectors = kMaxTileVectors;
    k.tall_vectors = 0;
    fill_scalar<1>(k), fill_scalar<2>(k), fill_scalar<3>(k), fill_scalar<4>(k), fill_scalar<5>(k);
    fill_scalar<6>(k);
    k.finish = finish_scalar;
    return k;
  }();
  return &kernels;
}
#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sparkle::cpu {
const TileKernels* scalar_kernels_of(std::string_view unit) {
  const auto make = SPARKLE_PICK(scalar_kernels, unit);
  return make ? make() : nullptr;
}
}  // namespace sparkle::cpu
#endif
