// Products with a handful of columns: an output is a dot product along k, vectors of a row times vectors of a column, added
// over the lanes at the end. A register tile would multiply whole vectors of columns that there are not. A call makes up to six
// rows of up to four columns, which lie one after another in the packed panel: ten loads for 24 products a step. With 16
// registers it makes as many of the rows at a time as there are registers for: two of four columns, six loads for eight.
#include "backends/cpu/gemm/gemm_tile.h"

#include <algorithm>

#include "families/gemm/gemm_shape.h"

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

// The columns of a call, in the lanes of one vector.
using ColumnTag = hn::CappedTag<float, kMaxTileVectors>;
using Columns = hn::Vec<ColumnTag>;

// Adds up the lanes of vectors in which blocks of 128 bits hold four sums each.
template <class D, class V>
HWY_INLINE Columns sum_of_blocks([[maybe_unused]] D d, V v) {
#if HWY_HAVE_SCALABLE
  HWY_ALIGN float lanes[kMaxLanes];
  hn::Store(v, d, lanes);
  Columns sum = hn::Load(ColumnTag(), lanes);
  for (size_t i = 4; i < hn::Lanes(d); i += 4) sum = hn::Add(sum, hn::Load(ColumnTag(), lanes + i));
  return sum;
#else
  if constexpr (hn::MaxLanes(D()) <= 4) {
    return v;
  } else {
    const hn::Half<D> half;
    return sum_of_blocks(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
#endif
}

// Four vectors to their four sums.
HWY_INLINE Columns sums_of(Floats a, Floats b, Floats c, Floats e) {
  const FloatTag d;
  const hn::RepartitionToWide<hn::RebindToUnsigned<FloatTag>> pairs;
  const auto ab = hn::BitCast(pairs, hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)));
  const auto ce = hn::BitCast(pairs, hn::Add(hn::InterleaveLower(d, c, e), hn::InterleaveUpper(d, c, e)));
  return sum_of_blocks(
      d, hn::Add(hn::BitCast(d, hn::InterleaveLower(pairs, ab, ce)), hn::BitCast(d, hn::InterleaveUpper(pairs, ab, ce))));
}

template <int kColumns>
HWY_INLINE Columns load_columns(const float* from) {
  if constexpr (kColumns == kMaxTileVectors) return hn::LoadU(ColumnTag(), from);
  return load_lanes(ColumnTag(), from, kColumns);
}
template <int kColumns>
HWY_INLINE void store_columns(Columns v, float* to) {
  if constexpr (kColumns == kMaxTileVectors) return hn::StoreU(v, ColumnTag(), to);
  store_lanes(v, ColumnTag(), to, kColumns);
}

// A row behind its sums, in the order of the fast epilogue (gemm_epilogue-inl.h).
template <int kColumns>
HWY_INLINE void finish_row(Columns sums, const TileCall& call, int row) {
  const ColumnTag d;
  if (!call.begin_at_zero) sums = hn::Add(sums, load_columns<kColumns>(call.partial + row * kColumns));
  if (!call.finish) return store_columns<kColumns>(sums, call.partial + row * kColumns);
  if (call.scale) sums = hn::Mul(sums, load_columns<kColumns>(call.scale));
  sums = hn::Add(sums, load_columns<kColumns>(call.bias));
  for (int i = 0; i < call.residuals; ++i) sums = hn::Add(sums, load_columns<kColumns>(call.residual[i][row] + call.column));
  // The sum is the second argument: x86 then hands a NaN on.
  if (call.clamp_below) sums = hn::Max(hn::Set(d, call.low), sums);
  if (call.clamp_above) sums = hn::Min(hn::Set(d, call.high), sums);
  store_columns<kColumns>(sums, call.y[row] + call.column);
}

template <int kRows, int kColumns>
HWY_INLINE void dots_from(const TileCall& call, int first) {
  static_assert(kRows * kColumns + kColumns + 1 <= SPARKLE_REGISTERS - 1, "the tile spills");
  const FloatTag d;
  const int64_t lanes = float_lanes(), apart = call.column_stride;
  RegisterTile<kRows, kColumns>::with_zeros([&](auto sums) SPARKLE_INLINED {
    for (const GemmRun *run = call.runs, *end = run + call.run_count; run != end; ++run) {
      const float* HWY_RESTRICT b = static_cast<const float*>(call.b) + run->k;
      const float* a[kRows];
      unrolled<kRows>([&](int r) SPARKLE_INLINED { a[r] = call.a[first + r] + run->a; });
      RegisterTile<1, kColumns>::with_zeros([&](auto weights) SPARKLE_INLINED {
        int64_t i = 0;
        for (; i + lanes <= run->length; i += lanes) {
          weights.each([&](Floats& w, int, int v) SPARKLE_INLINED { w = hn::LoadU(d, b + v * apart + i); });
          sums.each_row([&](auto row, int r) SPARKLE_INLINED { row.add_products(hn::LoadU(d, a[r] + i), weights); });
        }
        if (const int64_t rest = run->length - i; rest > 0) {
          weights.each([&](Floats& w, int, int v) SPARKLE_INLINED { w = load_lanes(d, b + v * apart + i, rest); });
          sums.each_row([&](auto row, int r) SPARKLE_INLINED { row.add_products(load_lanes(d, a[r] + i, rest), weights); });
        }
      });
    }
    sums.each_row([&](auto row, int r) SPARKLE_INLINED {
      Floats a = hn::Zero(d), b = a, c = a, e = a;
      row.each([&](Floats& sum, int, int v) SPARKLE_INLINED { (v == 0 ? a : v == 1 ? b : v == 2 ? c : e) = sum; });
      finish_row<kColumns>(sums_of(a, b, c, e), call, first + r);
    });
  });
}

template <int kRows, int kColumns>
void row_dots(const TileCall& call) {
  constexpr int kPart = dot_rows(SPARKLE_REGISTERS, kColumns), kRest = kRows % kPart;
  for (int first = 0; first + kPart <= kRows; first += kPart) dots_from<kPart, kColumns>(call, first);
  if constexpr (kRest > 0) dots_from<kRest, kColumns>(call, kRows - kRest);
}

template <int kRows>
void fill_row_dots(TileKernels& kernels) {
  kernels.set(kRows, 1, row_dots<kRows, 1>), kernels.set(kRows, 2, row_dots<kRows, 2>);
  kernels.set(kRows, 3, row_dots<kRows, 3>), kernels.set(kRows, 4, row_dots<kRows, 4>);
}

const TileKernels* row_dot_kernels() {
  static const TileKernels kernels = [] {
    TileKernels k;
    k.lanes = 1, k.max_vectors = kMaxTileVectors, k.columns_apart = true;
    fill_row_dots<1>(k), fill_row_dots<2>(k), fill_row_dots<3>(k);
    fill_row_dots<4>(k), fill_row_dots<5>(k), fill_row_dots<6>(k);
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
