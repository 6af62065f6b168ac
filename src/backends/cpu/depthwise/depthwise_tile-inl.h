// The register tile of the depthwise kernels: rows x columns output pixels of one vector of channels. Every input pixel is loaded
// once and multiplied into all outputs that it touches; the weights of a filter row lie in registers. At the borders of the
// image (kEdge) positions outside are skipped by branches that every vector of channels takes alike, so no padding is
// multiplied and no padded copy exists. Channels run innermost: the tile reads and writes memory in one stream.
#if defined(SPARKLE_DEPTHWISE_TILE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARKLE_DEPTHWISE_TILE_INL_H
#undef SPARKLE_DEPTHWISE_TILE_INL_H
#else
#define SPARKLE_DEPTHWISE_TILE_INL_H
#endif

#include "backends/cpu/depthwise/depthwise_call.h"
#include "backends/cpu/lanes-inl.h"

#undef SPARKLE_DW_UNROLL
#if defined(__clang__)
#define SPARKLE_DW_UNROLL _Pragma("clang loop unroll(full)")
#else
#define SPARKLE_DW_UNROLL _Pragma("GCC unroll 64")
#endif

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD && !HWY_HAVE_SCALABLE
namespace depthwise {
namespace hn = hwy::HWY_NAMESPACE;

// Where a tile lies: the planes of its image, the input coordinates of tap 0 of its first pixel, its first output pixel.
struct TilePlace {
  const float* x;  // pixel (0,0) of the input plane
  float* y;        // first output pixel
  int64_t h, w;
};

template <int kFilter, int kStride, int kRows, int kColumns, bool kEdge, bool kTail>
HWY_INLINE void tile_channels(const DepthwiseCall& call, const TilePlace& place, int64_t c, int64_t count) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<hn::ScalableTag<float>>;
  V sums[kRows][kColumns];
  const V start = call.bias && !call.scale ? load_some<kTail>(d, call.bias + c, count) : hn::Zero(d);
  SPARKLE_DW_UNROLL
  for (int row = 0; row < kRows; ++row) {
    SPARKLE_DW_UNROLL
    for (int column = 0; column < kColumns; ++column) sums[row][column] = start;
  }

  constexpr int kReachRows = (kRows - 1) * kStride + kFilter, kReachColumns = (kColumns - 1) * kStride + kFilter;
  const float* x = place.x + place.h * call.mx.pitch_h + place.w * call.mx.pitch_w + c;
  SPARKLE_DW_UNROLL
  for (int i = 0; i < kReachRows; ++i) {
    if (kEdge && (place.h + i < 0 || place.h + i >= call.mx.h)) continue;
    // Rows of the filter that meet input row i: one for each output row of the tile.
    V weights[kRows][kFilter];
    SPARKLE_DW_UNROLL
    for (int row = 0; row < kRows; ++row) {
      const int r = i - row * kStride;
      if (r < 0 || r >= kFilter) continue;
      SPARKLE_DW_UNROLL
      for (int s = 0; s < kFilter; ++s) weights[row][s] = hn::LoadU(d, call.w + (r * kFilter + s) * call.k_pitch + c);
    }
    SPARKLE_DW_UNROLL
    for (int j = 0; j < kReachColumns; ++j) {
      if (kEdge && (place.w + j < 0 || place.w + j >= call.mx.w)) continue;
      const V pixel = load_some<kTail>(d, x + i * call.mx.pitch_h + j * call.mx.pitch_w, count);
      SPARKLE_DW_UNROLL
      for (int row = 0; row < kRows; ++row) {
        const int r = i - row * kStride;
        if (r < 0 || r >= kFilter) continue;
        SPARKLE_DW_UNROLL
        for (int column = 0; column < kColumns; ++column) {
          const int s = j - column * kStride;
          if (s < 0 || s >= kFilter) continue;
          sums[row][column] = hn::MulAdd(weights[row][s], pixel, sums[row][column]);
        }
      }
    }
  }

  if (call.scale) {
    const V scale = load_some<kTail>(d, call.scale + c, count);
    const V bias = call.bias ? load_some<kTail>(d, call.bias + c, count) : hn::Zero(d);
    SPARKLE_DW_UNROLL
    for (int row = 0; row < kRows; ++row) {
      SPARKLE_DW_UNROLL
      for (int column = 0; column < kColumns; ++column) sums[row][column] = hn::MulAdd(sums[row][column], scale, bias);
    }
  }
  if (call.clamp) {
    const V low = hn::Set(d, call.low), high = hn::Set(d, call.high);
    SPARKLE_DW_UNROLL
    for (int row = 0; row < kRows; ++row) {
      SPARKLE_DW_UNROLL
      for (int column = 0; column < kColumns; ++column)
        sums[row][column] = simd_math::at_most(simd_math::at_least(sums[row][column], low), high);
    }
  }
  float* y = place.y + c;
  SPARKLE_DW_UNROLL
  for (int row = 0; row < kRows; ++row) {
    SPARKLE_DW_UNROLL
    for (int column = 0; column < kColumns; ++column)
      store_some<kTail>(sums[row][column], d, y + row * call.my.pitch_h + column * call.my.pitch_w, count);
  }
}

template <int kFilter, int kStride, int kRows, int kColumns, bool kEdge>
HWY_NOINLINE void tile(const DepthwiseCall& call, const TilePlace& place) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), channels = call.my.c;
  int64_t c = 0;
  for (; c + lanes <= channels; c += lanes)
    tile_channels<kFilter, kStride, kRows, kColumns, kEdge, false>(call, place, c, lanes);
  if (c < channels) tile_channels<kFilter, kStride, kRows, kColumns, kEdge, true>(call, place, c, channels - c);
}

inline constexpr int kMaxColumns = 7;
using TileFunction = void (*)(const DepthwiseCall&, const TilePlace&);

template <int kFilter, int kStride, int kRows, bool kEdge>
TileFunction tile_of(int64_t columns) {
  switch (columns) {
    case 1: return tile<kFilter, kStride, kRows, 1, kEdge>;
    case 2: return tile<kFilter, kStride, kRows, 2, kEdge>;
    case 3: return tile<kFilter, kStride, kRows, 3, kEdge>;
    case 4: return tile<kFilter, kStride, kRows, 4, kEdge>;
    case 5: return tile<kFilter, kStride, kRows, 5, kEdge>;
    case 6: return tile<kFilter, kStride, kRows, 6, kEdge>;
    default: return tile<kFilter, kStride, kRows, 7, kEdge>;
  }
}

// One row, or kRows rows, of output pixels in tiles of nearly equal width.
template <int kFilter, int kStride, int kRows>
void tile_row(const DepthwiseCall& call, TilePlace place, int64_t n, int64_t z, int64_t row) {
  const int64_t width = call.my.w;
  const int64_t most = std::min<int64_t>(kMaxColumns, std::max(call.columns_per_tile, 1));
  const int64_t tiles = (width + most - 1) / most;
  const int64_t reach_rows = (kRows - 1) * kStride + kFilter;
  const bool edge_rows = place.h < 0 || place.h + reach_rows > call.mx.h;
  int64_t q = 0;
  for (int64_t i = 0; i < tiles; ++i) {
    const int64_t columns = width / tiles + (i < width % tiles);
    const int64_t reach = (columns - 1) * kStride + kFilter;
    const bool edge = edge_rows || place.w < 0 || place.w + reach > call.mx.w;
    (edge ? tile_of<kFilter, kStride, kRows, true>(columns) : tile_of<kFilter, kStride, kRows, false>(columns))(call, place);
    if (call.strip)
      for (int64_t k = 0; k < kRows; ++k) finish_pixels(call, n, z, row + k, q, q + columns);
    place.y += columns * call.my.pitch_w;
    place.w += columns * kStride;
    q += columns;
  }
}

template <int kFilter, int kStride>
void tile_rows(const DepthwiseCall& call, int64_t begin, int64_t end) {
  for (int64_t at = begin; at < end;) {
    const int64_t row = at % call.my.h, z = at / call.my.h % call.my.d, n = at / (call.my.h * call.my.d);
    const int64_t depth = z * call.window.stride[0] - call.window.pad_begin[0];
    TilePlace place;
    place.x = call.x + n * call.mx.pitch_n + depth * call.mx.pitch_d;
    place.y = call.y + n * call.my.pitch_n + z * call.my.pitch_d + row * call.my.pitch_h;
    place.h = row * kStride - call.window.pad_begin[1];
    place.w = -call.window.pad_begin[2];
    // A plane outside the input contributes nothing: no row and no column of it is inside.
    if (depth < 0 || depth >= call.mx.d) place.h = call.mx.h;
#if SPARKLE_REGISTERS >= 32
    if (call.rows >= 2 && row + 1 < call.my.h && at + 1 < end) {
      tile_row<kFilter, kStride, 2>(call, place, n, z, row);
      at += 2;
      continue;
    }
#endif
    tile_row<kFilter, kStride, 1>(call, place, n, z, row);
    ++at;
  }
}

}  // namespace depthwise
#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
