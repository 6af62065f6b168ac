// The register tile of the depthwise kernels: rows x columns output pixels of one vector of channels. Every input pixel is
// loaded once and multiplied into all outputs that it touches; the weights of a filter row lie in registers. At the borders of
// the image (kEdge) positions outside are skipped by branches that every vector of channels takes alike, so no padding is
// multiplied and no padded copy exists. Channels run innermost: the tile reads and writes memory in one stream.
#if defined(SPARKLE_DEPTHWISE_TILE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARKLE_DEPTHWISE_TILE_INL_H
#undef SPARKLE_DEPTHWISE_TILE_INL_H
#else
#define SPARKLE_DEPTHWISE_TILE_INL_H
#endif

#include "backends/cpu/depthwise/depthwise_call.h"
#include "backends/cpu/simd/lanes-inl.h"

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
  int64_t c0, c1;  // channels
};

// Input row i of a tile: the rows of the filter that meet it, and its pixels times these.
template <int kFilter, int kStride, int kRows, int kColumns, bool kEdge, bool kTail, class V>
HWY_INLINE void input_row(const DepthwiseCall& call, const TilePlace& place, int i, int64_t c, int64_t count,
                          V (&sums)[kRows][kColumns]) {
  const hn::ScalableTag<float> d;
  constexpr int kReachColumns = (kColumns - 1) * kStride + kFilter;
  if (kEdge && (place.h + i < 0 || place.h + i >= call.mx.h)) return;
  const auto meets = [&](int row) { return kRows == 1 || (i - row * kStride >= 0 && i - row * kStride < kFilter); };
  V weights[kRows][kFilter];  // one row for each output row of the tile
  SPARKLE_DW_UNROLL
  for (int row = 0; row < kRows; ++row) {
    if (!meets(row)) continue;
    SPARKLE_DW_UNROLL
    for (int s = 0; s < kFilter; ++s)
      weights[row][s] = hn::LoadU(d, call.w + ((i - row * kStride) * kFilter + s) * call.k_strides + c);
  }
  const float* x = place.x + (place.h + i) * call.mx.row_stride + place.w * call.mx.pixel_stride + c;
  SPARKLE_DW_UNROLL
  for (int j = 0; j < kReachColumns; ++j) {
    if (kEdge && (place.w + j < 0 || place.w + j >= call.mx.w)) continue;
    const V pixel = load_some<kTail>(d, x + j * call.mx.pixel_stride, count);
    SPARKLE_DW_UNROLL
    for (int row = 0; row < kRows; ++row) {
      if (!meets(row)) continue;
      SPARKLE_DW_UNROLL
      for (int column = 0; column < kColumns; ++column) {
        const int s = j - column * kStride;
        if (s < 0 || s >= kFilter) continue;
        sums[row][column] = hn::MulAdd(weights[row][s], pixel, sums[row][column]);
      }
    }
  }
}

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

  constexpr int kReachRows = (kRows - 1) * kStride + kFilter;
  if constexpr (kRows == 1 && kFilter > 5) {  // its rows are all alike
    for (int i = 0; i < kReachRows; ++i)
      input_row<kFilter, kStride, kRows, kColumns, kEdge, kTail>(call, place, i, c, count, sums);
  } else {
    SPARKLE_DW_UNROLL
    for (int i = 0; i < kReachRows; ++i)
      input_row<kFilter, kStride, kRows, kColumns, kEdge, kTail>(call, place, i, c, count, sums);
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
      store_some<kTail>(sums[row][column], d, y + row * call.my.row_stride + column * call.my.pixel_stride, count);
  }
}

template <int kFilter, int kStride, int kRows, int kColumns, bool kEdge>
HWY_NOINLINE void tile(const DepthwiseCall& shared_call, const TilePlace& shared_place) {
  const hn::ScalableTag<float> d;
  // Copies of our own: a store of a vector may alias anything else, and every stride would be read again after it.
  const DepthwiseCall call = shared_call;
  const TilePlace place = shared_place;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t c = place.c0;
  for (; c + lanes <= place.c1; c += lanes)
    tile_channels<kFilter, kStride, kRows, kColumns, kEdge, false>(call, place, c, lanes);
  if (c < place.c1) tile_channels<kFilter, kStride, kRows, kColumns, kEdge, true>(call, place, c, place.c1 - c);
}

inline constexpr int kMaxColumns = 7;
using TileFunction = void (*)(const DepthwiseCall&, const TilePlace&);

// Tiles of nearly equal width are at least 4 wide, except in maps narrower than that, which are all border.
template <int kFilter, int kStride, int kRows>
TileFunction tile_of(int64_t columns, bool edge) {
  switch (columns) {
    case 1: return tile<kFilter, kStride, kRows, 1, true>;
    case 2: return tile<kFilter, kStride, kRows, 2, true>;
    case 3: return tile<kFilter, kStride, kRows, 3, true>;
    case 4: return edge ? tile<kFilter, kStride, kRows, 4, true> : tile<kFilter, kStride, kRows, 4, false>;
    case 5: return edge ? tile<kFilter, kStride, kRows, 5, true> : tile<kFilter, kStride, kRows, 5, false>;
    case 6: return edge ? tile<kFilter, kStride, kRows, 6, true> : tile<kFilter, kStride, kRows, 6, false>;
    default: return edge ? tile<kFilter, kStride, kRows, 7, true> : tile<kFilter, kStride, kRows, 7, false>;
  }
}

// Which output pixels a tile makes.
struct TilePixels {
  int64_t n, z, row, q, columns;
};

// One tile, and the rest of the epilogue while it lies in L1.
template <int kFilter, int kStride, int kRows>
void finished_tile(const DepthwiseCall& call, const TilePixels& at, int64_t depth, int64_t c0, int64_t c1) {
  TilePlace place;
  place.x = call.x + at.n * call.mx.image_stride + depth * call.mx.plane_stride;
  place.y = call.y + at.n * call.my.image_stride + at.z * call.my.plane_stride + at.row * call.my.row_stride +
            at.q * call.my.pixel_stride;
  place.h = at.row * kStride - call.window.pad_begin[1];
  place.w = at.q * kStride - call.window.pad_begin[2];
  place.c0 = c0, place.c1 = c1;
  // A plane outside the input contributes nothing: no row of it is inside.
  if (depth < 0 || depth >= call.mx.d) place.h = call.mx.h;
  const int64_t reach_rows = (kRows - 1) * kStride + kFilter, reach = (at.columns - 1) * kStride + kFilter;
  const bool edge = place.h < 0 || place.h + reach_rows > call.mx.h || place.w < 0 || place.w + reach > call.mx.w;
  tile_of<kFilter, kStride, kRows>(at.columns, edge)(call, place);
  if (call.strip)
    for (int64_t k = 0; k < kRows; ++k) finish_pixels(call, {at.n, at.z, at.row + k}, at.q, at.q + at.columns, c0, c1);
}

// Order: image plane, block of channels, column of tiles, down its rows, channels of the block. Going down, the input rows that
// two tiles share are still in L1, which the block of channels is made to fit.
template <int kFilter, int kStride>
void tile_rows(const DepthwiseCall& call, int64_t begin, int64_t end) {
  const int64_t width = call.my.w, most = std::min<int64_t>(kMaxColumns, std::max(call.columns_per_tile, 1));
  const int64_t tiles = (width + most - 1) / most;
  for (int64_t at = begin; at < end;) {
    const int64_t row_begin = at % call.my.h, row_end = std::min(call.my.h, row_begin + end - at);
    TilePixels pixels;
    pixels.z = at / call.my.h % call.my.d, pixels.n = at / (call.my.h * call.my.d);
    const int64_t depth = pixels.z * call.window.stride[0] - call.window.pad_begin[0];
    for (int64_t c0 = 0; c0 < call.my.c; c0 += call.block_channels) {
      const int64_t c1 = std::min(c0 + call.block_channels, call.my.c);
      pixels.q = 0;
      for (int64_t i = 0; i < tiles; ++i) {
        pixels.columns = width / tiles + (i < width % tiles);  // nearly equal widths
        for (pixels.row = row_begin; pixels.row < row_end;) {
#if SPARKLE_REGISTERS >= 32
          if (call.rows >= 2 && pixels.row + 1 < row_end) {
            finished_tile<kFilter, kStride, 2>(call, pixels, depth, c0, c1);
            pixels.row += 2;
            continue;
          }
#endif
          finished_tile<kFilter, kStride, 1>(call, pixels, depth, c0, c1);
          ++pixels.row;
        }
        pixels.q += pixels.columns;
      }
    }
    at += row_end - row_begin;
  }
}

}  // namespace depthwise
#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
