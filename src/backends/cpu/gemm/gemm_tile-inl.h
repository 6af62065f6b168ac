// The micro-kernel: rows x vectors of sums in registers, row pointers instead of an im2col buffer. One step of k, in a tile of
// 6 rows x 4 vectors:
//
//                          weights, a row of the packed panel
//                        +--------+--------+--------+--------+
//                        |   b0   |   b1   |   b2   |   b3   |   4 loads
//                        +========+========+========+========+
//   pixel 0: a[0][i]  -> | sum 00 | sum 01 | sum 02 | sum 03 |
//   pixel 1: a[1][i]  -> | sum 10 | sum 11 | sum 12 | sum 13 |   6 broadcasts,
//     ...                |  ...   |  ...   |  ...   |  ...   |   24 products: sum += a * b
//   pixel 5: a[5][i]  -> | sum 50 | sum 51 | sum 52 | sum 53 |
//                        +--------+--------+--------+--------+
//
// The FMA units are busy 24 issue slots per step while the load ports see 10, and sums, weights and a pixel are 29 of 32
// registers. With 16 registers the tile is 6x2: 12 slots, 8 loads, 15 registers. No compiler spills these. Weights of 16 bits
// are widened as they are loaded. The same algorithm on single numbers is in scalar_tile.cc. Compiled once per target.
#if defined(SPARKLE_GEMM_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARKLE_GEMM_TILE_INL_H_
#undef SPARKLE_GEMM_TILE_INL_H_
#else
#define SPARKLE_GEMM_TILE_INL_H_
#endif

#include "backends/cpu/gemm/gemm_epilogue-inl.h"
#include "backends/cpu/gemm/gemm_multiply-inl.h"
#include "backends/cpu/gemm/gemm_tile.h"
#include "backends/cpu/register_tile-inl.h"
#include "backends/cpu/simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD

// kChains: of sums, see chains_of(). kNearest: the level of cache that is prefetched into. W: the type that weights are stored
// in.
template <int kRows, int kVectors, int kChains, int kNearest, class W>
void tile(const TileCall& call) {
  static_assert(kRows * kVectors + kVectors + 1 <= SPARKLE_REGISTERS - 1, "the tile spills");
  RegisterTile<kRows, kVectors>::with_zeros([&](auto sums) SPARKLE_INLINED {
    if (!call.begin_at_zero) load_partial(sums, call.partial);
    multiply<W, kChains, kNearest>(sums, call);
    if (!call.finish) return store_partial(sums, call.partial);
    finish_in_registers(sums, call);
    store_rows(sums, call);
  });
}

// Those of kWidest and more vectors in the widest panel.
template <class W, int kRows, int kVectors, int kWidest = kVectors>
void fill(TileKernels& kernels) {
  constexpr int kSecond = fetches(kRows, kVectors, kFetchIntoL2) ? kFetchIntoL2 : kFetchIntoL1;
  constexpr int kChains = chains_of(kRows, kWidest);
  kernels.tile[0][kWidest - 1][kRows - 1][kVectors - 1] = tile<kRows, kVectors, kChains, kFetchIntoL1, W>;
  kernels.tile[1][kWidest - 1][kRows - 1][kVectors - 1] = tile<kRows, kVectors, kChains, kSecond, W>;
  if constexpr (kWidest < kMostVectors) fill<W, kRows, kVectors, kWidest + 1>(kernels);
}

#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled include guard
