// Expansion: a register tile of pixels x vectors as in the gemm family, but over all pixels of some rows in one call, because
// its sums are short (16 to 160 products) and the fixed cost of a call would count. Depthwise: a tile of rows x columns of one
// vector; every wide pixel is loaded once and multiplied into all outputs that it touches.
#include "backends/cpu/inverted/inverted_rows.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/inverted/inverted_rows.cc"
#include "backends/cpu/simd/simd.h"
// must come after simd.h
#include "backends/cpu/simd/lanes-inl.h"
#include "backends/cpu/simd/simd_math-inl.h"

#undef SPARKLE_IR_UNROLL
#if defined(__clang__)
#define SPARKLE_IR_UNROLL _Pragma("clang loop unroll(full)")
#else
#define SPARKLE_IR_UNROLL _Pragma("GCC unroll 64")
#endif

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD && !HWY_HAVE_SCALABLE
namespace inverted {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(D()));

// Where the next pixel lies; advanced by additions only.
struct PixelCursor {
  const WideRow* row;
  int64_t column, columns, x_stride, y_offset;
  const float* x;
  float* y;
  void enter() { column = 0, x = row->x, y = row->y + y_offset; }
  void step() {
    x += x_stride, y += kLanes;
    if (++column == columns) {
      ++row;
      enter();
    }
  }
};

template <int kRows, int kVectors>
HWY_INLINE void expand_tile(const ExpandCall& call, const float* const* x, float* const* y, const char* prefetch) {
  const D d;
  V sums[kRows][kVectors];
  SPARKLE_IR_UNROLL
  for (int r = 0; r < kRows; ++r) {
    SPARKLE_IR_UNROLL
    for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::LoadU(d, call.bias + v * kLanes);
  }
  const float* a[kRows];
  SPARKLE_IR_UNROLL
  for (int r = 0; r < kRows; ++r) a[r] = x[r];
  const float* HWY_RESTRICT b = call.weights;
  const int64_t channels = call.channels;
  for (int64_t i = 0; i < channels; ++i) {
    V weights[kVectors];
    SPARKLE_IR_UNROLL
    for (int v = 0; v < kVectors; ++v) weights[v] = hn::LoadU(d, b + v * kLanes);
    SPARKLE_IR_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const V pixel = hn::Set(d, a[r][i]);
      SPARKLE_IR_UNROLL
      for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(pixel, weights[v], sums[r][v]);
    }
    b += kVectors * kLanes;
    if constexpr (kRows * kVectors >= 18) {  // small tiles are bound by their loads
      __builtin_prefetch(prefetch, 0, 3);
      prefetch += call.prefetch_step;
    }
  }
  // The sum is the second argument: x86 then hands a NaN on.
  if (call.bounds.below) {
    const V low = hn::Set(d, call.bounds.low);
    SPARKLE_IR_UNROLL
    for (int r = 0; r < kRows; ++r) {
      SPARKLE_IR_UNROLL
      for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::Max(low, sums[r][v]);
    }
  }
  if (call.bounds.above) {
    const V high = hn::Set(d, call.bounds.high);
    SPARKLE_IR_UNROLL
    for (int r = 0; r < kRows; ++r) {
      SPARKLE_IR_UNROLL
      for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::Min(high, sums[r][v]);
    }
  }
  const int64_t stride = call.vector_stride;
  SPARKLE_IR_UNROLL
  for (int r = 0; r < kRows; ++r) {
    SPARKLE_IR_UNROLL
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[r][v], d, y[r] + v * stride);
  }
}

// Six row pointers and four vectors of weights fill the registers of x86 and Arm alike; narrow panels take as many rows as the
// pointers allow.
template <int kVectors>
void expand(const ExpandCall& shared) {
  const ExpandCall call = shared;  // stores of vectors may alias the caller's
  constexpr int kMost = 6;
  PixelCursor at{call.rows, 0, call.columns, call.x_stride, call.y_offset, nullptr, nullptr};
  const int64_t pixels = call.row_count * call.columns, tiles = (pixels + kMost - 1) / kMost;
  if (pixels == 0) return;
  at.enter();
  int64_t done = 0;
  const char* prefetch = call.prefetch;
  for (int64_t tile = 1; tile <= tiles; ++tile, prefetch += call.prefetch_step * call.channels) {
    const int64_t count = tile * pixels / tiles - done;
    done += count;
    const float* x[kMost];
    float* y[kMost];
    for (int64_t i = 0; i < count; ++i) {
      x[i] = at.x, y[i] = at.y;
      if (at.column + 1 == at.columns && at.row + 1 == call.rows + call.row_count) break;
      at.step();
    }
    switch (count) {
      case 6: expand_tile<6, kVectors>(call, x, y, prefetch); break;
      case 5: expand_tile<5, kVectors>(call, x, y, prefetch); break;
      case 4: expand_tile<4, kVectors>(call, x, y, prefetch); break;
      case 3: expand_tile<3, kVectors>(call, x, y, prefetch); break;
      case 2: expand_tile<2, kVectors>(call, x, y, prefetch); break;
      default: expand_tile<1, kVectors>(call, x, y, prefetch); break;
    }
  }
}

void spread(const SpreadRowsCall& call) {
  const D d;
  const bool whole = call.channels == kLanes;
  for (int64_t r = 0; r < call.row_count; ++r) {
    const float* x = call.rows[r].x + call.x_offset;
    float* y = call.rows[r].y + call.y_offset;
    for (int64_t i = 0; i < call.columns; ++i, x += call.x_stride, y += kLanes)
      hn::StoreU(HWY_LIKELY(whole) ? hn::LoadU(d, x) : load_lanes(d, x, call.channels), d, y);
  }
}

template <int kFilter, int kStride, int kRows, int kColumns, bool kPairs>
HWY_INLINE void deep_tile(const DeepCall& call, const float* const* rows, int64_t at, float* y) {
  const D d;
  V sums[kRows][kColumns];
  const V bias = hn::LoadU(d, call.bias);
  SPARKLE_IR_UNROLL
  for (int row = 0; row < kRows; ++row) {
    SPARKLE_IR_UNROLL
    for (int column = 0; column < kColumns; ++column) sums[row][column] = bias;
  }
  constexpr int kReachRows = (kRows - 1) * kStride + kFilter, kReachColumns = (kColumns - 1) * kStride + kFilter;
  SPARKLE_IR_UNROLL
  for (int i = 0; i < kReachRows; ++i) {
    // Rows of the filter that meet wide row i: one for each output row of the tile.
    V weights[kRows][kFilter];
    SPARKLE_IR_UNROLL
    for (int row = 0; row < kRows; ++row) {
      const int r = i - row * kStride;
      if (r < 0 || r >= kFilter) continue;
      SPARKLE_IR_UNROLL
      for (int s = 0; s < kFilter; ++s) weights[row][s] = hn::LoadU(d, call.weights + (r * kFilter + s) * kLanes);
    }
    const float* HWY_RESTRICT x = rows[i] + at;
    SPARKLE_IR_UNROLL
    for (int j = 0; j < kReachColumns; ++j) {
      const V pixel = hn::LoadU(d, x + j * kLanes);
      SPARKLE_IR_UNROLL
      for (int row = 0; row < kRows; ++row) {
        const int r = i - row * kStride;
        if (r < 0 || r >= kFilter) continue;
        SPARKLE_IR_UNROLL
        for (int column = 0; column < kColumns; ++column) {
          const int s = j - column * kStride;
          if (s < 0 || s >= kFilter) continue;
          sums[row][column] = hn::MulAdd(weights[row][s], pixel, sums[row][column]);
        }
      }
    }
  }
  if (call.bounds.below) {
    const V low = hn::Set(d, call.bounds.low);
    SPARKLE_IR_UNROLL
    for (int row = 0; row < kRows; ++row) {
      SPARKLE_IR_UNROLL
      for (int column = 0; column < kColumns; ++column) sums[row][column] = hn::Max(low, sums[row][column]);
    }
  }
  if (call.bounds.above) {
    const V high = hn::Set(d, call.bounds.high);
    SPARKLE_IR_UNROLL
    for (int row = 0; row < kRows; ++row) {
      SPARKLE_IR_UNROLL
      for (int column = 0; column < kColumns; ++column) sums[row][column] = hn::Min(high, sums[row][column]);
    }
  }
  SPARKLE_IR_UNROLL
  for (int row = 0; row < kRows; ++row) {
    SPARKLE_IR_UNROLL
    for (int column = 0; column < kColumns; ++column) {
      float* to = y + (kPairs ? 0 : row * call.y_row) + column * call.y_column;
      if constexpr (!kPairs) {
        hn::StoreU(sums[row][column], d, to);
      } else if (row == 0) {
        hn::StoreU(hn::InterleaveLower(d, sums[0][column], sums[kRows - 1][column]), d, to);
        hn::StoreU(hn::InterleaveUpper(d, sums[0][column], sums[kRows - 1][column]), d, to + kLanes);
      }
    }
  }
}

template <int kFilter, int kStride, int kRows, bool kPairs>
HWY_NOINLINE void deep_rows(const DeepCall& shared, int64_t row) {
  const DeepCall call = shared;
  const float* rows[(kRows - 1) * kStride + kFilter];
  for (int i = 0; i < (kRows - 1) * kStride + kFilter; ++i) rows[i] = call.rows[row * kStride + i];
  const int64_t tiles = (call.columns + call.most_columns - 1) / call.most_columns;
  int64_t q = 0;
  float* y = call.y + (kPairs ? row / 2 : row) * call.y_row;
  for (int64_t tile = 1; tile <= tiles; ++tile) {
    const int64_t columns = tile * call.columns / tiles - q, at = q * kStride * kLanes;
    switch (columns) {
      case 7: deep_tile<kFilter, kStride, kRows, 7, kPairs>(call, rows, at, y); break;
      case 6: deep_tile<kFilter, kStride, kRows, 6, kPairs>(call, rows, at, y); break;
      case 5: deep_tile<kFilter, kStride, kRows, 5, kPairs>(call, rows, at, y); break;
      case 4: deep_tile<kFilter, kStride, kRows, 4, kPairs>(call, rows, at, y); break;
      case 3: deep_tile<kFilter, kStride, kRows, 3, kPairs>(call, rows, at, y); break;
      case 2: deep_tile<kFilter, kStride, kRows, 2, kPairs>(call, rows, at, y); break;
      default: deep_tile<kFilter, kStride, kRows, 1, kPairs>(call, rows, at, y); break;
    }
    q += columns;
    y += columns * call.y_column;
  }
}

template <int kFilter, int kStride>
void deep(const DeepCall& call) {
  int64_t row = 0;
#if SPARKLE_REGISTERS >= 32
  if (call.pairs) {
    for (; row + 2 <= call.row_count; row += 2) deep_rows<kFilter, kStride, 2, true>(call, row);
    if (row < call.row_count) deep_rows<kFilter, kStride, 1, true>(call, row);
    return;
  }
  for (; row + 2 <= call.row_count; row += 2) deep_rows<kFilter, kStride, 2, false>(call, row);
#endif
  for (; row < call.row_count; ++row) deep_rows<kFilter, kStride, 1, false>(call, row);
}

#if SPARKLE_REGISTERS >= 32
template <int kFull, int kPairs>
HWY_NOINLINE void pairs_tile(const PairsCall& call, const float* a, float* sums) {
  const D d;
  const hn::Repartition<uint64_t, D> d64;
  V first[kPairs][kFull], second[kPairs][kFull], both[kPairs];
  SPARKLE_IR_UNROLL
  for (int p = 0; p < kPairs; ++p) {
    SPARKLE_IR_UNROLL
    for (int v = 0; v < kFull; ++v) first[p][v] = second[p][v] = hn::Zero(d);
    both[p] = hn::Zero(d);
  }
  // Every third pair has a pointer: the scaled index of x86 addresses its two neighbours too.
  const int64_t strides = call.stride, channels = call.channels;
  const float *a0 = a, *a3 = a + 3 * strides, *a6 = a + 6 * strides;
  const float* HWY_RESTRICT b = call.weights;
  for (int64_t i = 0; i < channels; ++i) {
    V weights[kFull];
    SPARKLE_IR_UNROLL
    for (int v = 0; v < kFull; ++v) weights[v] = hn::LoadU(d, b + v * kLanes);
    const V shared = hn::LoadU(d, b + kFull * kLanes);
    SPARKLE_IR_UNROLL
    for (int p = 0; p < kPairs; ++p) {
      const float* x = (p < 3 ? a0 : p < 6 ? a3 : a6) + p % 3 * strides;
      // Single pixels first: after the pair the compiler would cut them out of it, and no longer broadcast from memory.
      const V x0 = hn::Set(d, x[0]), x1 = hn::Set(d, x[1]);
      uint64_t two;
      std::memcpy(&two, x, sizeof two);
      SPARKLE_IR_UNROLL
      for (int v = 0; v < kFull; ++v) {
        first[p][v] = hn::MulAdd(x0, weights[v], first[p][v]);
        second[p][v] = hn::MulAdd(x1, weights[v], second[p][v]);
      }
      both[p] = hn::MulAdd(hn::BitCast(d, hn::Set(d64, two)), shared, both[p]);
    }
    a0 += 2, a3 += 2, a6 += 2;
    b += (kFull + 1) * kLanes;
  }
  SPARKLE_IR_UNROLL
  for (int p = 0; p < kPairs; ++p) {
    float* to = sums + 2 * p * (kFull + 1) * kLanes;
    SPARKLE_IR_UNROLL
    for (int v = 0; v < kFull; ++v) {
      hn::StoreU(first[p][v], d, to + v * kLanes);
      hn::StoreU(second[p][v], d, to + (kFull + 1 + v) * kLanes);
    }
    hn::StoreU(hn::ConcatEven(d, both[p], both[p]), d, to + kFull * kLanes);
    hn::StoreU(hn::ConcatOdd(d, both[p], both[p]), d, to + (2 * kFull + 1) * kLanes);
  }
}

template <int kFull>
void pairs(const PairsCall& call) {
  constexpr int kTile = kFull == 1 ? 8 : 4;
  int64_t done = 0;
  const auto take = [&](auto tile, int64_t count) {
    for (; done + count <= call.pairs; done += count)
      tile(call, call.a + done * call.stride, call.sums + 2 * done * (kFull + 1) * kLanes);
  };
  take(pairs_tile<kFull, kTile>, kTile);
  if constexpr (kTile == 8) take(pairs_tile<kFull, 4>, 4);
  take(pairs_tile<kFull, 2>, 2);
  take(pairs_tile<kFull, 1>, 1);
}
#endif

}  // namespace inverted

const InvertedKernels* inverted_kernels() {
  static const InvertedKernels kernels = [] {
    InvertedKernels k;
    k.lanes = inverted::kLanes;
    k.expand[0] = inverted::expand<1>, k.expand[1] = inverted::expand<2>;
#if SPARKLE_REGISTERS >= 32
    k.expand[2] = inverted::expand<3>, k.expand[3] = inverted::expand<4>;
#endif
    k.spread = inverted::spread;
    k.deep[0][0] = inverted::deep<3, 1>, k.deep[0][1] = inverted::deep<3, 2>;
    k.deep[1][0] = inverted::deep<5, 1>, k.deep[1][1] = inverted::deep<5, 2>;
#if SPARKLE_REGISTERS >= 32
    k.pairs[0] = inverted::pairs<1>, k.pairs[1] = inverted::pairs<2>;
#endif
    k.activate = simd_math::activate_strip;
    return k;
  }();
  return &kernels;
}
#elif SPARKLE_SIMD
const InvertedKernels* inverted_kernels() { return nullptr; }
#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sparkle::cpu {
const InvertedKernels* inverted_kernels_of(std::string_view unit) {
  const auto make = SPARKLE_PICK(inverted_kernels, unit);
  return make ? make() : nullptr;
}
}  // namespace sparkle::cpu
#endif
