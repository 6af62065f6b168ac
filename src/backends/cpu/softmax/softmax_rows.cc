// Three passes over data that the first one has brought into a cache: maximum; exponential and sum; scale. The logarithm needs
// no second write: x - max - log(sum).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/softmax/softmax_rows.cc"
#include "backends/cpu/simd.h"
// after simd.h: compiled once per target
#include "backends/cpu/simd_math-inl.h"
#include "backends/cpu/softmax/softmax_rows.h"

#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD
namespace hn = hwy::HWY_NAMESPACE;

// Rows of at most kVectors vectors: everything stays in registers.
template <int kVectors, class D>
HWY_INLINE void softmax_short_row(D d, const float* x, float* y, size_t count, bool logarithm) {
  using V = hn::Vec<D>;
  const size_t lanes = hn::Lanes(d), last = (kVectors - 1) * lanes;
  const auto mask = hn::FirstN(d, count - last);
  V v[kVectors];
  for (int k = 0; k + 1 < kVectors; ++k) v[k] = hn::LoadU(d, x + static_cast<size_t>(k) * lanes);
  v[kVectors - 1] = hn::IfThenElse(mask, hn::MaskedLoad(mask, d, x + last),
                                   hn::Set(d, -std::numeric_limits<float>::infinity()));
  V largest = v[0];
  for (int k = 1; k < kVectors; ++k) largest = hn::Max(largest, v[k]);
  largest = hn::MaxOfLanes(d, largest);
  V sum = hn::Zero(d);
  for (int k = 0; k < kVectors; ++k) {
    const V shifted = hn::Sub(v[k], largest);
    V e = simd_math::Exp(d, shifted);
    if (k + 1 == kVectors) e = hn::IfThenElseZero(mask, e);
    sum = hn::Add(sum, e);
    v[k] = logarithm ? shifted : e;
  }
  sum = hn::SumOfLanes(d, sum);
  const V last_term = logarithm ? simd_math::Log(d, sum) : hn::Div(hn::Set(d, 1.0f), sum);
  for (int k = 0; k < kVectors; ++k) {
    v[k] = logarithm ? hn::Sub(v[k], last_term) : hn::Mul(v[k], last_term);
    if (k + 1 < kVectors) hn::StoreU(v[k], d, y + static_cast<size_t>(k) * lanes);
  }
  hn::BlendedStore(v[kVectors - 1], mask, d, y + last);
}

void softmax_row(const float* x, float* y, size_t count, bool logarithm) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d);
  switch ((count + lanes - 1) / lanes) {
    case 0: return;
    case 1: return softmax_short_row<1>(d, x, y, count, logarithm);
    case 2: return softmax_short_row<2>(d, x, y, count, logarithm);
    case 3: return softmax_short_row<3>(d, x, y, count, logarithm);
    case 4: return softmax_short_row<4>(d, x, y, count, logarithm);
    default: break;
  }

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
  constexpr size_t kBlock = 4096;
  V total = hn::Zero(d);
  const auto pass = [&](auto store) HWY_ATTR {
    for (size_t begin = 0; begin < count; begin += kBlock) {
      const size_t end = count - begin < kBlock ? count : begin + kBlock;
      V s0 = hn::Zero(d), s1 = hn::Zero(d);
      size_t k = begin;
      for (; k + 2 * lanes <= end; k += 2 * lanes) {
        const V e0 = simd_math::Exp(d, hn::Sub(hn::LoadU(d, x + k), largest));
        const V e1 = simd_math::Exp(d, hn::Sub(hn::LoadU(d, x + k + lanes), largest));
        store(e0, k), store(e1, k + lanes);
        s0 = hn::Add(s0, e0), s1 = hn::Add(s1, e1);
      }
      for (; k < end; k += lanes) {
        const auto mask = hn::FirstN(d, end - k);
        const V e = hn::IfThenElseZero(mask, simd_math::Exp(d, hn::Sub(hn::MaskedLoad(mask, d, x + k), largest)));
        if (k + lanes <= end) {
          store(e, k);
        } else if (!logarithm) {
          hn::BlendedStore(e, mask, d, y + k);
        }
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

  const V factor = hn::Div(hn::Set(d, 1.0f), sum), log_sum = simd_math::Log(d, sum);
  const auto finish = [&](V v) HWY_ATTR { return logarithm ? hn::Sub(hn::Sub(v, largest), log_sum) : hn::Mul(v, factor); };
  const float* from = logarithm ? x : y;
  size_t k = 0;
  for (; k + lanes <= count; k += lanes) hn::StoreU(finish(hn::LoadU(d, from + k)), d, y + k);
  if (k < count) {
    const auto mask = hn::FirstN(d, count - k);
    hn::BlendedStore(finish(hn::MaskedLoad(mask, d, from + k)), mask, d, y + k);
  }
}

// Elements of a group of columns that are kept in L1.
inline constexpr size_t kStagedFloats = 6144;

// kVectors vectors of columns at once; maxima and sums stay in registers. Columns of moderate length are copied to `staged` on
// the way: rows a power of two apart share few sets of a cache and would not survive until the next pass.
template <int kVectors, class D, class M>
HWY_INLINE void softmax_column_group(D d, M mask, const float* x, int64_t x_pitch, float* y, int64_t y_pitch, size_t count,
                                     bool logarithm, float* staged) {
  using V = hn::Vec<D>;
  const size_t lanes = hn::Lanes(d);
  const auto load = [&](const float* p) HWY_ATTR { return kVectors == 1 ? hn::MaskedLoad(mask, d, p) : hn::LoadU(d, p); };
  const auto store = [&](V v, float* p) HWY_ATTR {
    if constexpr (kVectors == 1) {
      hn::BlendedStore(v, mask, d, p);
    } else {
      hn::StoreU(v, d, p);
    }
  };
  V largest[kVectors], sum[kVectors];
  for (int k = 0; k < kVectors; ++k) {
    largest[k] = load(x + static_cast<size_t>(k) * lanes);
    sum[k] = hn::Zero(d);
  }
  const bool stages = count * kVectors * lanes <= kStagedFloats;
  const int64_t staged_pitch = static_cast<int64_t>(kVectors * lanes);
  for (size_t i = 0; i < count; ++i) {
    const float* row = x + static_cast<int64_t>(i) * x_pitch;
    for (int k = 0; k < kVectors; ++k) {
      const V v = load(row + static_cast<size_t>(k) * lanes);
      largest[k] = hn::Max(largest[k], v);
      if (stages) store(v, staged + static_cast<int64_t>(i) * staged_pitch + static_cast<size_t>(k) * lanes);
    }
  }
  // Exponentials go to the staged copy or to y.
  const float* source = stages ? staged : x;
  float* middle = stages ? staged : y;
  const int64_t source_pitch = stages ? staged_pitch : x_pitch, middle_pitch = stages ? staged_pitch : y_pitch;
  for (size_t i = 0; i < count; ++i) {
    const float* row = source + static_cast<int64_t>(i) * source_pitch;
    float* to = middle + static_cast<int64_t>(i) * middle_pitch;
    for (int k = 0; k < kVectors; ++k) {
      const V e = simd_math::Exp(d, hn::Sub(load(row + static_cast<size_t>(k) * lanes), largest[k]));
      sum[k] = hn::Add(sum[k], e);
      if (!logarithm) store(e, to + static_cast<size_t>(k) * lanes);
    }
  }
  for (int k = 0; k < kVectors; ++k)
    sum[k] = logarithm ? hn::Add(simd_math::Log(d, sum[k]), largest[k]) : hn::Div(hn::Set(d, 1.0f), sum[k]);
  for (size_t i = 0; i < count; ++i) {
    const float* row = source + static_cast<int64_t>(i) * source_pitch;
    const float* exponential = middle + static_cast<int64_t>(i) * middle_pitch;
    float* to = y + static_cast<int64_t>(i) * y_pitch;
    for (int k = 0; k < kVectors; ++k) {
      const size_t at = static_cast<size_t>(k) * lanes;
      store(logarithm ? hn::Sub(load(row + at), sum[k]) : hn::Mul(load(exponential + at), sum[k]), to + at);
    }
  }
}

void softmax_columns(const float* x, int64_t x_pitch, float* y, int64_t y_pitch, size_t count, size_t columns,
                     bool logarithm) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  alignas(64) float staged[kStagedFloats];
  size_t c = 0;
  for (; c + 4 * lanes <= columns; c += 4 * lanes)
    softmax_column_group<4>(d, hn::FirstN(d, lanes), x + c, x_pitch, y + c, y_pitch, count, logarithm, staged);
  for (; c < columns; c += lanes)
    softmax_column_group<1>(d, hn::FirstN(d, columns - c), x + c, x_pitch, y + c, y_pitch, count, logarithm, staged);
}

SoftmaxFunctions find_softmax() { return {softmax_row, softmax_columns}; }
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
