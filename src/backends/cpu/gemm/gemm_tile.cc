// The register tiles (gemm_tile-inl.h) for weights in f32, and the general epilogue.
#include "backends/cpu/gemm/gemm_tile.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/gemm/gemm_tile.cc"
#include "backends/cpu/simd/simd.h"
// must come after simd.h
#include "backends/cpu/gemm/gemm_finish-inl.h"
#include "backends/cpu/gemm/gemm_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD
namespace hn = hwy::HWY_NAMESPACE;

template <int kRows>
void fill_row(TileKernels& kernels) {
  fill<float, kRows, 1>(kernels);
  if constexpr (kRows <= kMaxTileRows || SPARKLE_REGISTERS >= 32) fill<float, kRows, 2>(kernels);
  if constexpr (kRows <= kMaxTileRows && SPARKLE_REGISTERS >= 32)
    fill<float, kRows, 3>(kernels), fill<float, kRows, 4>(kernels);
}

const TileKernels* tile_kernels() {
  static const TileKernels kernels = [] {
    TileKernels k;
    k.lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<float>()));
    k.max_vectors = kMostVectors;
    fill_row<1>(k), fill_row<2>(k), fill_row<3>(k), fill_row<4>(k), fill_row<5>(k), fill_row<6>(k);
    k.tall_vectors = SPARKLE_REGISTERS >= 32 ? 2 : 1;
    fill_row<7>(k), fill_row<8>(k), fill_row<9>(k), fill_row<10>(k), fill_row<11>(k), fill_row<12>(k);
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
const TileKernels* tile_kernels_of(std::string_view unit) {
  const auto make = SPARKLE_PICK(tile_kernels, unit);
  return make ? make() : nullptr;
}
}  // namespace sparkle::cpu
#endif
