// Three passes over data that the first one has brought into a cache: maximum; exponential and sum; scale. The logarithm needs
// no second write: x - max - log(sum).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/softmax/softmax_rows.cc"
#include "backends/cpu/simd/simd.h"
// after simd.h: compiled once per target
#include "backends/cpu/simd/lanes-inl.h"
#include "backends/cpu/simd/simd_math-inl.h"
#include "backends/cpu/softmax/softmax_rows.h"

#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD
namespace hn = hwy::HWY_NAMESPACE;

// Rows of more than kVectors - 1 and at most kVectors <= 4 vectors: everything stays in registers.
template <int kVectors, class D>
HWY_INLINE void softmax_short_row(D d, const float* x, float* y, size_t count, bool logarithm) {
  using V = hn::Vec<D>;
  const size_t lanes = hn::Lanes(d), last = (kVectors - 1) * lanes;
  const auto left = static_cast<int64_t>(count - last);
  const auto mask = hn::FirstN(d, count - last);
  const V v3 = hn::IfThenElse(mask, load_lanes(d, x + last, left), hn::Set(d, -std::numeric_limits<float>::infinity()));
  const V v0 = kVectors > 1 ? hn::LoadU(d, x) : v3;
  const V v1 = kVectors > 2 ? hn::LoadU(d, x + lanes) : v3;
  const V v2 = kVectors > 3 ? hn::LoadU(d, x + 2 * lanes) : v3;
  const V largest = hn::MaxOfLanes(d, hn::Max(hn::Max(v0, v1), hn::Max(v2, v3)));

  const V d0 = hn::Sub(v0, largest), d1 = hn::Sub(v1, largest), d2 = hn::Sub(v2, largest), d3 = hn::Sub(v3, largest);
  const V e3 = hn::IfThenElseZero(mask, simd_math::ExpOfNegative(d, d3));
  const V e0 = kVectors > 1 ? simd_math::ExpOfNegative(d, d0) : e3;
  const V e1 = kVectors > 2 ? simd_math::ExpOfNegative(d, d1) : e3;
  const V e2 = kVectors > 3 ? simd_math::ExpOfNegative(d, d2) : e3;
  V sum = e3;
  if constexpr (kVectors > 1) sum = hn::Add(sum, e0);
  if constexpr (kVectors > 2) sum = hn::Add(sum, e1);
  if constexpr (kVectors > 3) sum = hn::Add(sum, e2);
  sum = hn::SumOfLanes(d, sum);

  const V term = logarithm ? simd_math::LogOfNormal(d, sum) : hn::Div(hn::Set(d, 1.0f), sum);
  const auto finish = [&](V shifted, V e) HWY_ATTR { return logarithm ? hn::Sub(shifted, term) : hn::Mul(e, term); };
  if constexpr (kVectors > 1) hn::StoreU(finish(d0, e0), d, y);
  if constexpr (kVectors > 2) hn::StoreU(finish(d1, e1), d, y + lanes);
  if constexpr (kVectors > 3) hn::StoreU(finish(d2, e2), d, y + 2 * lanes);
  store_lanes(finish(d3, e3), d, y + last, left);
}

inline constexpr size_t kBlock = 4096;  // floats that are summed up together

void softmax_row(const float* x, float* y, size_t count, bool logarithm) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d);
  if (count == 0) return;
  if (count <= lanes) return softmax_short_row<1>(d, x, y, count, logarithm);
  if (count <= 2 * lanes) return softmax_short_row<2>(d, x, y, count, logarithm);
  if (count <= 3 * lanes) return softmax_short_row<3>(d, x, y, count, logarithm);
  if (count <= 4 * lanes) return softmax_short_row<4>(d, x, y, count, logarithm);

  // The last vector overlaps the one before: a maximum may see elements twice.
  V m0 = hn::LoadU(d, x), m1 = hn::LoadU(d, x + count - lanes);
  size_t i = lanes;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    m0 = hn::Max(m0, hn::LoadU(d, x + i));
    m1 = hn::Max(m1, hn::LoadU(d, x + i + lanes));
  }
  for (; i + lanes <= count; i += lanes) m0 = hn::Max(m0, hn::LoadU(d, x + i));
  const V largest = hn::MaxOfLanes(d, hn::Max(m0, m1));

  // Sums of blocks, then their sum: long rows stay accurate.
  V total = hn::Zero(d);
  const auto pass = [&](auto store) HWY_ATTR {
    for (size_t begin = 0; begin < count; begin += kBlock) {
      const size_t end = count - begin < kBlock ? count : begin + kBlock;
      V s0 = hn::Zero(d), s1 = hn::Zero(d);
      size_t k = begin;
      for (; k + 2 * lanes <= end; k += 2 * lanes) {
        const V e0 = simd_math::ExpOfNegative(d, hn::Sub(hn::LoadU(d, x + k), largest));
        const V e1 = simd_math::ExpOfNegative(d, hn::Sub(hn::LoadU(d, x + k + lanes), largest));
        store(e0, k), store(e1, k + lanes);
        s0 = hn::Add(s0, e0), s1 = hn::Add(s1, e1);
      }
      for (; k + lanes <= end; k += lanes) {
        const V e = simd_math::ExpOfNegative(d, hn::Sub(hn::LoadU(d, x + k), largest));
        store(e, k);
        s0 = hn::Add(s0, e);
      }
      if (const auto left = static_cast<int64_t>(end - k); left > 0) {
        const V v = load_lanes(d, x + k, left);
        const V e = hn::IfThenElseZero(hn::FirstN(d, end - k), simd_math::ExpOfNegative(d, hn::Sub(v, largest)));
        if (!logarithm) store_lanes(e, d, y + k, left);
        s0 = hn::Add(s0, e);
      }
      total = hn::Add(total, hn::Add(s0, s1));
    }
  };
  if (logarithm) {
    pass([](V, size_t) HWY_ATTR {});
  } else {
    pass([&](V e, size_t at) HWY_ATTR { hn::StoreU(e, d, y + at); });
  }
  const V sum = hn::SumOfLanes(d, total);

  const V factor = hn::Div(hn::Set(d, 1.0f), sum), log_sum = simd_math::LogOfNormal(d, sum);
  const auto finish = [&](V v) HWY_ATTR { return logarithm ? hn::Sub(hn::Sub(v, largest), log_sum) : hn::Mul(v, factor); };
  const float* from = logarithm ? x : y;
  size_t k = 0;
  for (; k + lanes <= count; k += lanes) hn::StoreU(finish(hn::LoadU(d, from + k)), d, y + k);
  const auto left = static_cast<int64_t>(count - k);
  if (left > 0) store_lanes(finish(load_lanes(d, from + k, left)), d, y + k, left);
}

// Two rows of more than four vectors and at most kBlock floats side by side: what one waits for (its maximum, its sum) the
// other fills with work. Not the logarithm.
void softmax_pair(const float* x, int64_t x_stride, float* y, int64_t y_stride, size_t count) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d), last = count - lanes;
  const float *xa = x, *xb = x + x_stride;
  float *ya = y, *yb = y + y_stride;
  V ma = hn::LoadU(d, xa + last), mb = hn::LoadU(d, xb + last), na = ma, nb = mb;
  size_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    ma = hn::Max(ma, hn::LoadU(d, xa + i)), mb = hn::Max(mb, hn::LoadU(d, xb + i));
    na = hn::Max(na, hn::LoadU(d, xa + i + lanes)), nb = hn::Max(nb, hn::LoadU(d, xb + i + lanes));
  }
  if (i + lanes <= count) ma = hn::Max(ma, hn::LoadU(d, xa + i)), mb = hn::Max(mb, hn::LoadU(d, xb + i));
  const V top_a = hn::MaxOfLanes(d, hn::Max(ma, na)), top_b = hn::MaxOfLanes(d, hn::Max(mb, nb));

  V sa = hn::Zero(d), sb = sa, ta = sa, tb = sa;
  const auto pass = [&](const float* from, float* to, V top, V& sum) HWY_ATTR {
    const V e = simd_math::ExpOfNegative(d, hn::Sub(hn::LoadU(d, from), top));
    hn::StoreU(e, d, to);
    sum = hn::Add(sum, e);
  };
  for (i = 0; i + 2 * lanes <= count; i += 2 * lanes) {
    pass(xa + i, ya + i, top_a, sa), pass(xb + i, yb + i, top_b, sb);
    pass(xa + i + lanes, ya + i + lanes, top_a, ta), pass(xb + i + lanes, yb + i + lanes, top_b, tb);
  }
  for (; i + lanes <= count; i += lanes) pass(xa + i, ya + i, top_a, sa), pass(xb + i, yb + i, top_b, sb);
  const auto left = static_cast<int64_t>(count - i);
  if (left > 0) {
    const auto mask = hn::FirstN(d, count - i);
    const auto rest = [&](const float* from, float* to, V top, V& sum) HWY_ATTR {
      const V e = hn::IfThenElseZero(mask, simd_math::ExpOfNegative(d, hn::Sub(load_lanes(d, from, left), top)));
      store_lanes(e, d, to, left);
      sum = hn::Add(sum, e);
    };
    rest(xa + i, ya + i, top_a, ta), rest(xb + i, yb + i, top_b, tb);
  }
  const V one = hn::Set(d, 1.0f);
  const V fa = hn::Div(one, hn::SumOfLanes(d, hn::Add(sa, ta))), fb = hn::Div(one, hn::SumOfLanes(d, hn::Add(sb, tb)));
  for (i = 0; i + lanes <= count; i += lanes) {
    hn::StoreU(hn::Mul(hn::LoadU(d, ya + i), fa), d, ya + i);
    hn::StoreU(hn::Mul(hn::LoadU(d, yb + i), fb), d, yb + i);
  }
  if (left > 0) {
    store_lanes(hn::Mul(load_lanes(d, ya + i, left), fa), d, ya + i, left);
    store_lanes(hn::Mul(load_lanes(d, yb + i, left), fb), d, yb + i, left);
  }
}

// `rows` rows of `count` floats each.
void softmax_rows(const float* x, int64_t x_stride, float* y, int64_t y_stride, size_t count, size_t rows, bool logarithm) {
  const size_t lanes = hn::Lanes(hn::ScalableTag<float>());
  size_t r = 0;
  if (!logarithm && count > 4 * lanes && count <= kBlock) {
    for (; r + 2 <= rows; r += 2, x += 2 * x_stride, y += 2 * y_stride) softmax_pair(x, x_stride, y, y_stride, count);
  }
  for (; r < rows; ++r, x += x_stride, y += y_stride) softmax_row(x, y, count, logarithm);
}

// Floats of a group of columns that are kept in L1.
inline constexpr size_t kStagedFloats = 6144;

// Four vectors of columns, or (kWide false) the first `left` lanes of one; maxima and sums stay in registers. Columns of
// moderate length are copied to `staged` on the way: rows a power of two apart share few sets of a cache and would not survive
// until the next pass.
template <bool kWide, class D>
HWY_INLINE void softmax_column_group(D d, int64_t left, const float* x, int64_t x_stride, float* y, int64_t y_stride,
                                     size_t count, bool logarithm, float* staged) {
  using V = hn::Vec<D>;
  const size_t lanes = hn::Lanes(d);
  const int64_t rows = static_cast<int64_t>(count), staged_stride = static_cast<int64_t>((kWide ? 4 : 1) * lanes);
  const bool stages = rows * staged_stride <= static_cast<int64_t>(kStagedFloats);
  const auto load = [&](const float* p) HWY_ATTR { return kWide ? hn::LoadU(d, p) : load_lanes(d, p, left); };
  const auto store = [&](V v, float* p) HWY_ATTR {
    if constexpr (kWide) {
      hn::StoreU(v, d, p);
    } else {
      store_lanes(v, d, p, left);
    }
  };
  V m0 = load(x), m1 = m0, m2 = m0, m3 = m0;
  if constexpr (kWide) m1 = load(x + lanes), m2 = load(x + 2 * lanes), m3 = load(x + 3 * lanes);
  for (int64_t i = 0; i < rows; ++i) {
    const float* row = x + i * x_stride;
    float* copy = staged + i * staged_stride;
    const auto pass = [&](V largest, size_t at) HWY_ATTR {
      const V v = load(row + at);
      if (stages) store(v, copy + at);
      return hn::Max(largest, v);
    };
    m0 = pass(m0, 0);
    if constexpr (kWide) m1 = pass(m1, lanes), m2 = pass(m2, 2 * lanes), m3 = pass(m3, 3 * lanes);
  }
  // Exponentials go to the staged copy or to y.
  const float* source = stages ? staged : x;
  float* middle = stages ? staged : y;
  const int64_t source_stride = stages ? staged_stride : x_stride, middle_stride = stages ? staged_stride : y_stride;
  V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  for (int64_t i = 0; i < rows; ++i) {
    const float* row = source + i * source_stride;
    float* to = middle + i * middle_stride;
    const auto pass = [&](V sum, V largest, size_t at) HWY_ATTR {
      const V e = simd_math::ExpOfNegative(d, hn::Sub(load(row + at), largest));
      if (!logarithm) store(e, to + at);
      return hn::Add(sum, e);
    };
    s0 = pass(s0, m0, 0);
    if constexpr (kWide) s1 = pass(s1, m1, lanes), s2 = pass(s2, m2, 2 * lanes), s3 = pass(s3, m3, 3 * lanes);
  }
  const auto term = [&](V sum, V largest) HWY_ATTR {
    return logarithm ? hn::Add(simd_math::LogOfNormal(d, sum), largest) : hn::Div(hn::Set(d, 1.0f), sum);
  };
  s0 = term(s0, m0), s1 = term(s1, m1), s2 = term(s2, m2), s3 = term(s3, m3);
  for (int64_t i = 0; i < rows; ++i) {
    const float* from = logarithm ? source + i * source_stride : middle + i * middle_stride;
    float* to = y + i * y_stride;
    const auto pass = [&](V t, size_t at) HWY_ATTR {
      const V v = load(from + at);
      store(logarithm ? hn::Sub(v, t) : hn::Mul(v, t), to + at);
    };
    pass(s0, 0);
    if constexpr (kWide) pass(s1, lanes), pass(s2, 2 * lanes), pass(s3, 3 * lanes);
  }
}

// A few columns without gaps, whose number divides that of the lanes: neighbours in memory fill vectors, and a column's maximum
// and sum are those of each columns-th lane.
void softmax_interleaved(const float* x, float* y, size_t count, size_t columns, bool logarithm) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d), all = count * columns, whole = all / lanes * lanes;
  const auto left = static_cast<int64_t>(all - whole);
  const auto mask = hn::FirstN(d, all - whole);
  const V lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  const auto rest = [&](const float* from) HWY_ATTR { return load_lanes(d, from + whole, left); };
  alignas(64) float each[HWY_MAX_BYTES / sizeof(float)];
  const auto of_columns = [&](V v, auto join) HWY_ATTR {
    hn::Store(v, d, each);
    for (size_t i = columns; i < lanes; ++i) each[i % columns] = join(each[i % columns], each[i]);
    for (size_t i = columns; i < lanes; ++i) each[i] = each[i % columns];
    return hn::Load(d, each);
  };

  V m0 = lowest, m1 = lowest;
  size_t i = 0;
  for (; i + 2 * lanes <= all; i += 2 * lanes)
    m0 = hn::Max(m0, hn::LoadU(d, x + i)), m1 = hn::Max(m1, hn::LoadU(d, x + i + lanes));
  if (i + lanes <= all) m0 = hn::Max(m0, hn::LoadU(d, x + i));
  if (left > 0) m1 = hn::Max(m1, hn::IfThenElse(mask, rest(x), lowest));
  const V largest = of_columns(hn::Max(m0, m1), [](float a, float b) { return a > b ? a : b; });

  V s0 = hn::Zero(d), s1 = s0;
  const auto pass = [&](size_t at, V& sum) HWY_ATTR {
    const V e = simd_math::ExpOfNegative(d, hn::Sub(hn::LoadU(d, x + at), largest));
    if (!logarithm) hn::StoreU(e, d, y + at);
    sum = hn::Add(sum, e);
  };
  for (i = 0; i + 2 * lanes <= all; i += 2 * lanes) pass(i, s0), pass(i + lanes, s1);
  if (i + lanes <= all) pass(i, s0);
  if (left > 0) {
    const V e = hn::IfThenElseZero(mask, simd_math::ExpOfNegative(d, hn::Sub(rest(x), largest)));
    if (!logarithm) store_lanes(e, d, y + whole, left);
    s1 = hn::Add(s1, e);
  }
  const V sum = of_columns(hn::Add(s0, s1), [](float a, float b) { return a + b; });

  const V term = logarithm ? hn::Add(simd_math::LogOfNormal(d, sum), largest) : hn::Div(hn::Set(d, 1.0f), sum);
  const float* from = logarithm ? x : y;
  const auto finish = [&](V v) HWY_ATTR { return logarithm ? hn::Sub(v, term) : hn::Mul(v, term); };
  const V last = left > 0 ? finish(rest(from)) : lowest;
  for (i = 0; i + lanes <= all; i += lanes) hn::StoreU(finish(hn::LoadU(d, from + i)), d, y + i);
  if (left > 0) store_lanes(last, d, y + whole, left);
}

void softmax_columns(const float* x, int64_t x_stride, float* y, int64_t y_stride, size_t count, size_t columns,
                     bool logarithm) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto gap = static_cast<int64_t>(columns);
  if (columns < lanes && lanes % columns == 0 && x_stride == gap && y_stride == gap && count <= kBlock)
    return softmax_interleaved(x, y, count, columns, logarithm);
  alignas(64) float staged[kStagedFloats];
  size_t c = 0;
  for (; c + 4 * lanes <= columns; c += 4 * lanes)
    softmax_column_group<true>(d, 0, x + c, x_stride, y + c, y_stride, count, logarithm, staged);
  for (; c < columns; c += lanes) {
    const int64_t left = static_cast<int64_t>(columns - c < lanes ? columns - c : lanes);
    softmax_column_group<false>(d, left, x + c, x_stride, y + c, y_stride, count, logarithm, staged);
  }
}

SoftmaxFunctions find_softmax() { return {softmax_row, softmax_rows, softmax_columns}; }
#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sparkle::cpu {

SoftmaxFunctions softmax_functions(std::string_view unit) {
  const auto find = SPARKLE_PICK(find_softmax, unit);
  return find ? find() : SoftmaxFunctions{};
}

}  // namespace sparkle::cpu
#endif
