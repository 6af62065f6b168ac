// The register tiles (gemm_tile-inl.h) for weights stored in 16 bits, as f16 or bf16, and the rounding into these types. Sums
// and everything else are in f32.
#include "backends/cpu/gemm/gemm_tile.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/gemm/gemm_tile_16.cc"
#include "backends/cpu/simd/simd.h"
// must come after simd.h
#include "backends/cpu/gemm/gemm_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD
namespace hn = hwy::HWY_NAMESPACE;

void narrow_to_f16(const float* HWY_RESTRICT from, void* to, int64_t count) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<hwy::float16_t, decltype(d)> d16;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto* HWY_RESTRICT out = static_cast<hwy::float16_t*>(to);
  for (int64_t i = 0; i < count; i += lanes) hn::StoreU(hn::DemoteTo(d16, hn::LoadU(d, from + i)), d16, out + i);
}

// To nearest, even in the middle.
void narrow_to_bf16(const float* HWY_RESTRICT from, void* to, int64_t count) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<uint32_t, decltype(d)> du;
  const hn::Rebind<int32_t, decltype(d)> di;
  const hn::Rebind<uint16_t, decltype(d)> d16;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto* HWY_RESTRICT out = static_cast<uint16_t*>(to);
  for (int64_t i = 0; i < count; i += lanes) {
    const auto bits = hn::BitCast(du, hn::LoadU(d, from + i));
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
    const auto rounded = hn::ShiftRight<16>(hn::Add(hn::Add(bits, hn::Set(du, 0x7fff)), odd));
    hn::StoreU(hn::DemoteTo(d16, hn::BitCast(di, rounded)), d16, out + i);
  }
}

template <class W, int kRows>
void fill_row(TileKernels& kernels) {
  fill<W, kRows, 1>(kernels), fill<W, kRows, 2>(kernels);
  if constexpr (SPARKLE_REGISTERS >= 32) fill<W, kRows, 3>(kernels), fill<W, kRows, 4>(kernels);
}

template <class W>
TileKernels kernels_for() {
  TileKernels k;
  k.lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<float>()));
  k.max_vectors = kMostVectors;
  k.weight_bytes = sizeof(W);
  fill_row<W, 1>(k), fill_row<W, 2>(k), fill_row<W, 3>(k), fill_row<W, 4>(k), fill_row<W, 5>(k), fill_row<W, 6>(k);
  return k;
}

TileKernels tiles_f16() {
  TileKernels k = kernels_for<hwy::float16_t>();
  k.narrow = narrow_to_f16;
  return k;
}
TileKernels tiles_bf16() {
  TileKernels k = kernels_for<Bfloat>();
  k.narrow = narrow_to_bf16;
  return k;
}
#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sparkle::cpu {
TileKernels tile_kernels_16(std::string_view unit, DType weights) {
  const auto make = weights == DType::f16 ? SPARKLE_PICK(tiles_f16, unit) : SPARKLE_PICK(tiles_bf16, unit);
  TileKernels kernels = make ? make() : TileKernels{};
  if (const TileKernels* wide = tile_kernels_of(unit)) kernels.finish = wide->finish;
  return kernels;
}
}  // namespace sparkle::cpu
#endif
