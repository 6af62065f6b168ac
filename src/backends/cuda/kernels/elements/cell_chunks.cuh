// Neighbours in memory as few loads and stores: 16 bytes each where there are so many.
#pragma once

#include "backends/cuda/kernels/elements/cells.cuh"

namespace sparkle::cuda {

template <int kBytes>
struct PieceOf;
template <>
struct PieceOf<16> {
  using Type = Words4;
};
template <>
struct PieceOf<8> {
  using Type = uint64_t;
};
template <>
struct PieceOf<4> {
  using Type = uint32_t;
};
template <>
struct PieceOf<2> {
  using Type = uint16_t;
};
// Cells of one piece.
template <class Bits, int kCount>
struct PieceCells {
  Bits v[kCount];
};
template <class Bits, int kCount>
inline constexpr int kPieceBytes = kCount * static_cast<int>(sizeof(Bits)) < 16 ? kCount * static_cast<int>(sizeof(Bits)) : 16;

// kCount cells, a power of two of them, from an address that is a multiple of a piece's bytes.
template <class Bits, int kCount>
SPARKLE_DEVICE void load_cells(Bits (&cells)[kCount], const Bits* from) {
  constexpr int kBytes = kPieceBytes<Bits, kCount>, kEach = kBytes / static_cast<int>(sizeof(Bits));
  using Piece = typename PieceOf<kBytes>::Type;
  SPARKLE_UNROLL
  for (int p = 0; p < kCount / kEach; ++p) {
    const Piece piece = load_global(reinterpret_cast<const Piece*>(from) + p);
    const auto some = __builtin_bit_cast(PieceCells<Bits, kEach>, piece);
    SPARKLE_UNROLL
    for (int i = 0; i < kEach; ++i) cells[p * kEach + i] = some.v[i];
  }
}
template <class Bits, int kCount>
SPARKLE_DEVICE void store_cells(Bits* to, const Bits (&cells)[kCount]) {
  constexpr int kBytes = kPieceBytes<Bits, kCount>, kEach = kBytes / static_cast<int>(sizeof(Bits));
  using Piece = typename PieceOf<kBytes>::Type;
  SPARKLE_UNROLL
  for (int p = 0; p < kCount / kEach; ++p) {
    PieceCells<Bits, kEach> some;
    SPARKLE_UNROLL
    for (int i = 0; i < kEach; ++i) some.v[i] = cells[p * kEach + i];
    store_global(reinterpret_cast<Piece*>(to) + p, __builtin_bit_cast(Piece, some));
  }
}

}  // namespace sparkle::cuda
