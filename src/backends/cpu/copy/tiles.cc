// Transpositions in registers. A tile of L x L elements (L of them fill 16 bytes) is transposed by log2(L) rounds of
// interleaving row i with row i + L/2: seen as bits, each round rotates the number (row, column) by one place, and L rounds
// later row and column have changed places. Wider vectors hold several such tiles side by side, one per 16 bytes.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/copy/tiles.cc"
#include "backends/cpu/copy/tiles.h"

#include <cstring>

#include "backends/cpu/simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD
namespace hn = hwy::HWY_NAMESPACE;

#undef SPARKLE_TILES
#define SPARKLE_TILES (!HWY_HAVE_SCALABLE)

template <class T>
HWY_INLINE void transpose_plain(const TileArguments& s, int64_t a0, int64_t a1, int64_t b0, int64_t b1) {
  for (int64_t a = a0; a < a1; ++a)
    for (int64_t b = b0; b < b1; ++b)
      std::memcpy(s.y + a * s.ya + b * static_cast<int64_t>(sizeof(T)), s.x + a * static_cast<int64_t>(sizeof(T)) + b * s.xb,
                  sizeof(T));
}

#if SPARKLE_TILES
// 16 bytes of each of `blocks` rows, `step` bytes apart.
template <class T, size_t blocks>
HWY_INLINE hn::Vec<hn::FixedTag<T, blocks * 16 / sizeof(T)>> load_blocks(const std::byte* x, int64_t step) {
  const hn::FixedTag<T, blocks * 16 / sizeof(T)> d;
  if constexpr (blocks == 1) {
    (void)step;
    return hn::LoadU(d, reinterpret_cast<const T*>(x));
  } else {
    return hn::Combine(d, load_blocks<T, blocks / 2>(x + step * static_cast<int64_t>(blocks / 2), step),
                       load_blocks<T, blocks / 2>(x, step));
  }
}

// L elements of a times blocks * L elements of b.
template <class T, size_t blocks, bool stream>
HWY_INLINE void tile(const std::byte* x, int64_t xb, std::byte* y, int64_t ya) {
  constexpr size_t kL = 16 / sizeof(T);
  const hn::FixedTag<T, blocks * kL> d;
  using V = hn::Vec<decltype(d)>;
  V v[kL], w[kL];
  HWY_UNROLL(16)
  for (size_t i = 0; i < kL; ++i)
    v[i] = load_blocks<T, blocks>(x + static_cast<int64_t>(i) * xb, static_cast<int64_t>(kL) * xb);
  HWY_UNROLL(4)
  for (size_t round = 1; round < kL; round *= 2) {
    HWY_UNROLL(8)
    for (size_t i = 0; i < kL / 2; ++i) {
      w[2 * i] = hn::InterleaveLower(d, v[i], v[i + kL / 2]);
      w[2 * i + 1] = hn::InterleaveUpper(d, v[i], v[i + kL / 2]);
    }
    HWY_UNROLL(16)
    for (size_t i = 0; i < kL; ++i) v[i] = w[i];
  }
  HWY_UNROLL(16)
  for (size_t i = 0; i < kL; ++i) {
    T* to = reinterpret_cast<T*>(y + static_cast<int64_t>(i) * ya);
    if constexpr (stream) {
      hn::Stream(v[i], d, to);
    } else {
      hn::StoreU(v[i], d, to);
    }
  }
}

// All of a for blocks * L elements of b from b0 on, in `groups` groups so that whole lines of y are written at once. The last
// tile overlaps the one before it.
template <class T, size_t blocks, size_t groups, bool stream>
HWY_INLINE void strip(const TileArguments& s, int64_t b0) {
  constexpr auto kL = static_cast<int64_t>(16 / sizeof(T));
  constexpr auto kElement = static_cast<int64_t>(sizeof(T));
  for (int64_t a = 0; a < s.na; a += kL) {
    if (a + kL > s.na) a = s.na - kL;
    for (int64_t g = 0; g < static_cast<int64_t>(groups); ++g) {
      const int64_t b = b0 + g * static_cast<int64_t>(blocks) * kL;
      tile<T, blocks, stream>(s.x + a * kElement + b * s.xb, s.xb, s.y + a * s.ya + b * kElement, s.ya);
    }
  }
}
#endif

template <class T>
void transpose(const TileArguments& s) {
#if SPARKLE_TILES
  constexpr auto kL = static_cast<int64_t>(16 / sizeof(T));
  constexpr size_t kBlocks = HWY_MAX_BYTES / 16 > 4 ? 4 : HWY_MAX_BYTES / 16;
  constexpr size_t kGroups = 4 / kBlocks;
  constexpr int64_t kLine = 4 * kL;
  if (s.na >= kL && s.nb >= kL) {
    const bool stream = s.stream && reinterpret_cast<uintptr_t>(s.y) % 64 == 0 && s.ya % 64 == 0;
    int64_t b = 0;
    for (; b + kLine <= s.nb; b += kLine) {
      if (stream) {
        strip<T, kBlocks, kGroups, true>(s, b);
      } else {
        strip<T, kBlocks, kGroups, false>(s, b);
      }
    }
    for (; b < s.nb; b += kL) strip<T, 1, 1, false>(s, b + kL <= s.nb ? b : s.nb - kL);
    return;
  }
#endif
  // Blocks whose lines of x and y stay in L1.
  constexpr int64_t kBlock = 16;
  for (int64_t b = 0; b < s.nb; b += kBlock)
    for (int64_t a = 0; a < s.na; a += kBlock)
      transpose_plain<T>(s, a, a + kBlock < s.na ? a + kBlock : s.na, b, b + kBlock < s.nb ? b + kBlock : s.nb);
}

template <class T, int nb>
void interleave_planes(const TileArguments& s) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const T* x[4];
  for (int j = 0; j < 4; ++j) x[j] = reinterpret_cast<const T*>(s.x + (j < nb ? j : 0) * s.xb);
  int64_t a = 0;
  for (; a + lanes <= s.na; a += lanes) {
    T* y = reinterpret_cast<T*>(s.y) + a * nb;
    const auto v0 = hn::LoadU(d, x[0] + a), v1 = hn::LoadU(d, x[1] + a);
    if constexpr (nb == 2) hn::StoreInterleaved2(v0, v1, d, y);
    if constexpr (nb == 3) hn::StoreInterleaved3(v0, v1, hn::LoadU(d, x[2] + a), d, y);
    if constexpr (nb == 4) hn::StoreInterleaved4(v0, v1, hn::LoadU(d, x[2] + a), hn::LoadU(d, x[3] + a), d, y);
  }
  transpose_plain<T>(s, a, s.na, 0, nb);
}

template <class T, int na>
void deinterleave_planes(const TileArguments& s) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  T* y[4];
  for (int j = 0; j < 4; ++j) y[j] = reinterpret_cast<T*>(s.y + (j < na ? j : 0) * s.ya);
  int64_t b = 0;
  for (; b + lanes <= s.nb; b += lanes) {
    const T* x = reinterpret_cast<const T*>(s.x) + b * na;
    hn::Vec<decltype(d)> v0, v1, v2, v3;
    if constexpr (na == 2) hn::LoadInterleaved2(d, x, v0, v1);
    if constexpr (na == 3) hn::LoadInterleaved3(d, x, v0, v1, v2);
    if constexpr (na == 4) hn::LoadInterleaved4(d, x, v0, v1, v2, v3);
    hn::StoreU(v0, d, y[0] + b);
    hn::StoreU(v1, d, y[1] + b);
    if constexpr (na >= 3) hn::StoreU(v2, d, y[2] + b);
    if constexpr (na >= 4) hn::StoreU(v3, d, y[3] + b);
  }
  transpose_plain<T>(s, 0, na, b, s.nb);
}
#endif

#if SPARKLE_SIMD
void transpose1(const TileArguments& s) { transpose<uint8_t>(s); }
void transpose2(const TileArguments& s) { transpose<uint16_t>(s); }
void transpose4(const TileArguments& s) { transpose<uint32_t>(s); }
void transpose8(const TileArguments& s) { transpose<uint64_t>(s); }
#undef SPARKLE_PLANES
#define SPARKLE_PLANES(count)                                                                     \
  void interleave1x##count(const TileArguments& s) { interleave_planes<uint8_t, count>(s); }      \
  void interleave2x##count(const TileArguments& s) { interleave_planes<uint16_t, count>(s); }     \
  void interleave4x##count(const TileArguments& s) { interleave_planes<uint32_t, count>(s); }     \
  void deinterleave1x##count(const TileArguments& s) { deinterleave_planes<uint8_t, count>(s); }  \
  void deinterleave2x##count(const TileArguments& s) { deinterleave_planes<uint16_t, count>(s); } \
  void deinterleave4x##count(const TileArguments& s) { deinterleave_planes<uint32_t, count>(s); }
SPARKLE_PLANES(2)
SPARKLE_PLANES(3)
SPARKLE_PLANES(4)
#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sparkle::cpu {

TileFunction transpose_tiles(std::string_view unit, int64_t element) {
  switch (element) {
    case 1: return SPARKLE_PICK(transpose1, unit);
    case 2: return SPARKLE_PICK(transpose2, unit);
    case 4: return SPARKLE_PICK(transpose4, unit);
    case 8: return SPARKLE_PICK(transpose8, unit);
    default: return nullptr;
  }
}

#define SPARKLE_PLANE_CASES(way, count)                                      \
  if (n == count && element == 1) return SPARKLE_PICK(way##1x##count, unit); \
  if (n == count && element == 2) return SPARKLE_PICK(way##2x##count, unit); \
  if (n == count && element == 4) return SPARKLE_PICK(way##4x##count, unit);

TileFunction interleave(std::string_view unit, int64_t element, int64_t n) {
  SPARKLE_PLANE_CASES(interleave, 2)
  SPARKLE_PLANE_CASES(interleave, 3)
  SPARKLE_PLANE_CASES(interleave, 4)
  return nullptr;
}

TileFunction deinterleave(std::string_view unit, int64_t element, int64_t n) {
  SPARKLE_PLANE_CASES(deinterleave, 2)
  SPARKLE_PLANE_CASES(deinterleave, 3)
  SPARKLE_PLANE_CASES(deinterleave, 4)
  return nullptr;
}

}  // namespace sparkle::cpu
#endif
