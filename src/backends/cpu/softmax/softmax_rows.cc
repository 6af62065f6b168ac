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

// Rows of at most one vector: everything stays in a register.
template <class D>
HWY_INLINE void softmax_short_row(D d, const float* x, float* y, size_t count, bool logarithm) {
  using V = hn::Vec<D>;
  const auto mask = hn::FirstN(d, count);
  const V v = hn::IfThenElse(mask, hn::MaskedLoad(mask, d, x), hn::Set(d, -std::numeric_limits<float>::infinity()));
  const V shifted = hn::Sub(v, hn::MaxOfLanes(d, v));
  const V e = hn::IfThenElseZero(mask, simd_math::Exp(d, shifted));
  const V sum = hn::SumOfLanes(d, e);
  hn::BlendedStore(logarithm ? hn::Sub(shifted, simd_math::Log(d, sum)) : hn::Div(e, sum), mask, d, y);
}

void softmax_row(const float* x, float* y, size_t count, bool logarithm) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d);
  if (count <= lanes) return softmax_short_row(d, x, y, count, logarithm);

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

void softmax_columns(const float* x, int64_t x_pitch, float* y, int64_t y_pitch, size_t count, size_t columns,
                     bool logarithm) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d);
  HWY_ALIGN float largest[kSoftmaxColumns], sums[kSoftmaxColumns];
  const auto rows = [&](auto f) HWY_ATTR {
    for (size_t i = 0; i < count; ++i) {
      const float* from = x + static_cast<int64_t>(i) * x_pitch;
      float* to = y + static_cast<int64_t>(i) * y_pitch;
      size_t c = 0;
      for (; c + lanes <= columns; c += lanes) {
        f(i, from, to, c, [](const float* p, auto tag) HWY_ATTR { return hn::LoadU(tag, p); },
          [](V v, auto tag, float* p) HWY_ATTR { hn::StoreU(v, tag, p); });
      }
      if (c < columns) {
        const auto mask = hn::FirstN(d, columns - c);
        f(i, from, to, c, [mask](const float* p, auto tag) HWY_ATTR { return hn::MaskedLoad(mask, tag, p); },
          [mask](V v, auto tag, float* p) HWY_ATTR { hn::BlendedStore(v, mask, tag, p); });
      }
    }
  };
  rows([&](size_t i, const float* from, float*, size_t c, auto load, auto store) HWY_ATTR {
    const V v = load(from + c, d);
    store(i == 0 ? v : hn::Max(load(largest + c, d), v), d, largest + c);
  });
  rows([&](size_t i, const float* from, float* to, size_t c, auto load, auto store) HWY_ATTR {
    const V e = simd_math::Exp(d, hn::Sub(load(from + c, d), load(largest + c, d)));
    if (!logarithm) store(e, d, to + c);
    store(i == 0 ? e : hn::Add(load(sums + c, d), e), d, sums + c);
  });
  for (size_t c = 0; c < columns; c += lanes) {
    const auto mask = hn::FirstN(d, columns - c);
    const V sum = hn::IfThenElse(mask, hn::MaskedLoad(mask, d, sums + c), hn::Set(d, 1.0f));
    hn::BlendedStore(logarithm ? simd_math::Log(d, sum) : hn::Div(hn::Set(d, 1.0f), sum), mask, d, sums + c);
  }
  rows([&](size_t, const float* from, float* to, size_t c, auto load, auto store) HWY_ATTR {
    if (logarithm) {
      store(hn::Sub(hn::Sub(load(from + c, d), load(largest + c, d)), load(sums + c, d)), d, to + c);
    } else {
      store(hn::Mul(load(to + c, d), load(sums + c, d)), d, to + c);
    }
  });
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
