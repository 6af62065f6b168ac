// Pooling of planes, columns side by side in vectors: for some output rows first the rows of the window are joined into a strip
// with what padding counts as on both sides, then each strip is joined along the columns. The strips of several rows lie
// between a store and the loads that overlap it, which would wait for it otherwise.
#include "backends/cpu/pool/pool_planes.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/pool/pool_planes.cc"
#include "backends/cpu/simd/simd.h"
#include "backends/cpu/simd/lanes-inl.h"
#include "backends/cpu/pool/pool_steps-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD
namespace pool {
namespace hn = hwy::HWY_NAMESPACE;

// to[i]: element i of some rows joined, `step` apart; kMore: with what is there. kRows 0: any number.
template <class Step, int kRows, bool kMore>
HWY_INLINE void join_rows(const float* x, int64_t count, int64_t step, int64_t n, float* to) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t rows = kRows ? kRows : count;
  const auto joined = [&](const float* from, auto&& load, auto sum) HWY_ATTR {
    for (int64_t k = kMore ? 0 : 1; k < rows; ++k) sum = Step::add(sum, load(from + k * step));
    return sum;
  };
  const auto at = [&](int64_t i) HWY_ATTR {
    const auto load = [&](const float* from) HWY_ATTR { return hn::LoadU(d, from); };
    return joined(x + i, load, kMore ? load(to + i) : Step::only(load(x + i)));
  };
  if (n < lanes) {
    const auto load = [&](const float* from) HWY_ATTR { return load_lanes(d, from, n); };
    return store_lanes(joined(x, load, kMore ? load(to) : Step::only(load(x))), d, to, n);
  }
  int64_t i = 0;
  if constexpr (kMore) {  // the last vector overlaps the one before it: it is made before that is stored
    const auto last = at(n - lanes);
    for (; i + lanes <= n; i += lanes) hn::StoreU(at(i), d, to + i);
    hn::StoreU(last, d, to + n - lanes);
  } else {
    for (; i + lanes <= n; i += lanes) hn::StoreU(at(i), d, to + i);
    if (i < n) hn::StoreU(at(n - lanes), d, to + n - lanes);
  }
}

template <class Step>
HWY_INLINE void join_rows_of(const float* x, int64_t count, int64_t step, int64_t n, float* to) {
  switch (count) {
    case 2: return join_rows<Step, 2, false>(x, 2, step, n, to);
    case 3: return join_rows<Step, 3, false>(x, 3, step, n, to);
    default: return join_rows<Step, 0, false>(x, count, step, n, to);
  }
}

// Every `stride`-th element from x on; kStride 0: of any stride.
template <int kStride, class D>
HWY_INLINE hn::Vec<D> load_strided(D d, const float* x, hn::Vec<hn::RebindToSigned<D>> places) {
  if constexpr (kStride == 1) {
    return hn::LoadU(d, x);
  } else if constexpr (kStride == 2) {
    return hn::ConcatEven(d, hn::LoadU(d, x + hn::Lanes(d)), hn::LoadU(d, x));
  } else {
    return hn::GatherIndex(d, x, places);
  }
}

// n outputs of `count` rows from their strips; kTaps 0: any number.
template <class Step, int kStride, int kTaps>
void join_columns(const PlanePool& pool, const float* strip, int64_t count, int64_t n, const PlaneTaps* rows, float share,
                  const float* shares, float* y) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t taps = kTaps ? kTaps : pool.window.filter[2], dilation = pool.window.dilation[2];
  const int64_t stride = kStride ? kStride : pool.window.stride[2];
  const auto places = hn::Mul(hn::Iota(di, 0), hn::Set(di, static_cast<int32_t>(stride)));
  for (int64_t row = 0; row < count; ++row, strip += pool.strip, y += pool.my.row_stride) {
    const auto by = hn::Set(d, Step::kShares ? share * rows[row].share : 1);
    const auto at = [&](int64_t q) HWY_ATTR {
      const float* x = strip + q * stride;
      auto sum = load_strided<kStride>(d, x, places);
      for (int64_t s = 1; s < taps; ++s) sum = Step::join(sum, load_strided<kStride>(d, x + s * dilation, places));
      if constexpr (Step::kShares) return hn::Mul(hn::Mul(sum, by), hn::LoadU(d, shares + q));
      return Step::root(sum);
    };
    int64_t q = 0;
    for (; q + lanes <= n; q += lanes) hn::StoreU(at(q), d, y + q);
    if (q == n) continue;
    if (n >= lanes) {
      hn::StoreU(at(n - lanes), d, y + n - lanes);
    } else {
      store_lanes(at(0), d, y, n);
    }
  }
}

template <class Step, int kStride>
HWY_INLINE auto columns_joined_by(int64_t taps) {
  return taps == 2   ? join_columns<Step, kStride, 2>
         : taps == 3 ? join_columns<Step, kStride, 3>
                     : join_columns<Step, kStride, 0>;
}

// What the strips of outputs [from, from + n) of a row hold: padding, then columns [first, last) of x, then padding.
struct Strip {
  int64_t low, high, length, first;
};
HWY_INLINE Strip strip_of(const PlanePool& pool, int64_t from, int64_t n) {
  const Window& w = pool.window;
  Strip s;
  s.length = (n - 1) * w.stride[2] + (w.filter[2] - 1) * w.dilation[2] + 1;
  const int64_t start = from * w.stride[2] - w.pad_begin[2];
  s.low = std::clamp<int64_t>(-start, 0, s.length), s.high = std::clamp(pool.mx.w - start, s.low, s.length);
  s.first = start + s.low;
  return s;
}

// The strips of `count` output rows, but for the padding on their sides.
template <class Step>
void make_strips(const PlanePool& pool, const Strip& s, const float* x, const PlaneTaps& planes, const PlaneTaps* rows,
                 int64_t count, float* strip) {
  const int64_t row_step = pool.window.dilation[1] * pool.mx.row_stride, n = s.high - s.low;
  const int64_t plane_step = pool.window.dilation[0] * pool.mx.plane_stride;
  strip += s.low, x += s.first + planes.first;
  for (int64_t row = 0; row < count; ++row, strip += pool.strip) {
    if (planes.count == 0 || rows[row].count == 0) {
      std::fill_n(strip, n, hn::GetLane(Step::start(hn::ScalableTag<float>())));
      continue;
    }
    join_rows_of<Step>(x + rows[row].first, rows[row].count, row_step, n, strip);
    for (int64_t t = 1; t < planes.count; ++t)
      join_rows<Step, 0, true>(x + rows[row].first + t * plane_step, rows[row].count, row_step, n, strip);
  }
}

template <class Step>
void plane_rows(const PlanePool& pool, int64_t begin, int64_t end, float* scratch) {
  const FeatureMap &mx = pool.mx, &my = pool.my;
  const int64_t stride = pool.window.stride[2], taps = pool.window.filter[2];
  const auto columns_joined = stride == 1   ? columns_joined_by<Step, 1>(taps)
                              : stride == 2 ? columns_joined_by<Step, 2>(taps)
                                            : columns_joined_by<Step, 0>(taps);
  const float empty = hn::GetLane(Step::start(hn::ScalableTag<float>()));
  int64_t padded = -1;  // the strips have the padding of outputs from here on
  for (int64_t at = begin; at < end;) {
    const int64_t p = at % my.h, z = at / my.h % my.d, c = at / (my.h * my.d) % my.c, n = at / (my.h * my.d * my.c);
    const int64_t count = std::min({pool.strips, my.h - p, end - at});
    const PlaneTaps& planes = pool.planes[static_cast<size_t>(z)];
    const PlaneTaps* rows = &pool.rows[static_cast<size_t>(p)];
    const float* x = pool.x + n * mx.image_stride + c * mx.channel_stride;
    float* y = pool.y + n * my.image_stride + c * my.channel_stride + z * my.plane_stride + p * my.row_stride;
    for (int64_t from = 0; from < my.w; from += pool.columns) {
      const int64_t outputs = std::min(pool.columns, my.w - from);
      const Strip s = strip_of(pool, from, outputs);
      if (padded != from) {
        for (float* strip = scratch; strip < scratch + pool.strips * pool.strip; strip += pool.strip)
          std::fill_n(strip, s.low, empty), std::fill_n(strip + s.high, s.length - s.high, empty);
        padded = from;
      }
      if (s.high > s.low) make_strips<Step>(pool, s, x, planes, rows, count, scratch);
      columns_joined(pool, scratch, count, outputs, rows, planes.share, Step::kShares ? pool.shares.data() + from : nullptr,
                     y + from);
    }
    at += count;
  }
}

}  // namespace pool

void pool_planes(const PlanePool& pool, int64_t begin, int64_t end, float* scratch) {
  switch (pool.kind) {
    case PoolKind::max: return pool::plane_rows<pool::Maximum>(pool, begin, end, scratch);
    case PoolKind::average: return pool::plane_rows<pool::Mean>(pool, begin, end, scratch);
    case PoolKind::lp:
      return (pool.squares ? pool::plane_rows<pool::RootOfSquares> : pool::plane_rows<pool::SumOfSizes>)(pool, begin, end,
                                                                                                         scratch);
  }
}
#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sparkle::cpu {

PlaneLoop pool_plane_rows(std::string_view unit) { return SPARKLE_PICK(pool_planes, unit); }

}  // namespace sparkle::cpu
#endif
