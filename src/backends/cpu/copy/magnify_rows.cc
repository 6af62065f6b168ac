// Table lookups spread the elements of a vector over `times` vectors. Each copy of a row is made anew from x, which is in L1 by
// then: stores to two rows in turns took twice as long as one row after the other (64x112x112 twice as large on Zen 4: 0.51 ms
// instead of 0.25).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/copy/magnify_rows.cc"
#include "backends/cpu/copy/magnify_rows.h"

#include <cstring>

#include "backends/cpu/simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
HWY_INLINE void magnify_scalars(const T* x, T* y, int64_t from, int64_t to, int64_t times) {
  for (int64_t i = from; i < to; ++i)
    for (int64_t k = 0; k < times; ++k) y[times * i + k] = x[i];
}

// Elements of 4 or 8 bytes. The last vector of a row overlaps the one before it.
template <class T, int kTimes>
void magnify_by(const MagnifyArguments& a) {
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> di;
  using Index = hn::TFromD<decltype(di)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  alignas(64) Index places[kTimes * HWY_MAX_BYTES / sizeof(Index)];
  for (int64_t i = 0; i < kTimes * lanes; ++i) places[i] = static_cast<Index>(i / kTimes);
  for (int64_t r = 0; r < a.rows * a.copies; ++r) {
    const T* x = reinterpret_cast<const T*>(a.x + r / a.copies * a.px);
    T* y = reinterpret_cast<T*>(a.y + r * a.py);
    const auto at = [&](int64_t i) HWY_ATTR {
      const auto v = hn::LoadU(d, x + i);
      HWY_UNROLL(4)
      for (int k = 0; k < kTimes; ++k) {
        const auto from = hn::IndicesFromVec(d, hn::LoadU(di, places + k * lanes));
        hn::StoreU(kTimes == 1 ? v : hn::TableLookupLanes(v, from), d, y + kTimes * i + k * lanes);
      }
    };
    int64_t i = 0;
    for (; i + lanes <= a.n; i += lanes) at(i);
    if (i == a.n) continue;
    if (a.n >= lanes) {
      at(a.n - lanes);
    } else {
      magnify_scalars(x, y, 0, a.n, kTimes);
    }
  }
}

template <class T>
void magnify_wide(const MagnifyArguments& a) {
  switch (a.times) {
    case 1: return magnify_by<T, 1>(a);
    case 2: return magnify_by<T, 2>(a);
    case 3: return magnify_by<T, 3>(a);
    default: return magnify_by<T, 4>(a);
  }
}

// Elements of 1 or 2 bytes.
template <class T>
void magnify_narrow(const MagnifyArguments& a) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t r = 0; r < a.rows * a.copies; ++r) {
    const T* x = reinterpret_cast<const T*>(a.x + r / a.copies * a.px);
    T* y = reinterpret_cast<T*>(a.y + r * a.py);
    int64_t i = 0;
    for (; i + lanes <= a.n; i += lanes) {
      const auto v = hn::LoadU(d, x + i);
      if (a.times == 1) hn::StoreU(v, d, y + i);
      if (a.times == 2) hn::StoreInterleaved2(v, v, d, y + 2 * i);
      if (a.times == 3) hn::StoreInterleaved3(v, v, v, d, y + 3 * i);
      if (a.times == 4) hn::StoreInterleaved4(v, v, v, v, d, y + 4 * i);
    }
    magnify_scalars(x, y, i, a.n, a.times);
  }
}

// Runs of at least a vector, whose last vector overlaps the one before it.
void magnify_runs(const MagnifyArguments& a) {
  const hn::ScalableTag<uint8_t> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t r = 0; r < a.rows * a.copies; ++r) {
    const auto* x = reinterpret_cast<const uint8_t*>(a.x + r / a.copies * a.px);
    auto* y = reinterpret_cast<uint8_t*>(a.y + r * a.py);
    for (int64_t i = 0; i < a.n; ++i, x += a.bytes)
      for (int64_t k = 0; k < a.times; ++k, y += a.bytes) {
        int64_t b = 0;
        for (; b + lanes <= a.bytes; b += lanes) hn::StoreU(hn::LoadU(d, x + b), d, y + b);
        if (b < a.bytes) hn::StoreU(hn::LoadU(d, x + a.bytes - lanes), d, y + a.bytes - lanes);
      }
  }
}

// Runs of less than a vector.
void magnify_short_runs(const MagnifyArguments& a) {
  for (int64_t r = 0; r < a.rows * a.copies; ++r) {
    const std::byte* x = a.x + r / a.copies * a.px;
    std::byte* y = a.y + r * a.py;
    for (int64_t i = 0; i < a.n; ++i, x += a.bytes)
      for (int64_t k = 0; k < a.times; ++k, y += a.bytes) std::memcpy(y, x, static_cast<size_t>(a.bytes));
  }
}

void magnify(const MagnifyArguments& a) {
  if (a.times <= kMostTimes) {
    switch (a.bytes) {
      case 1: return magnify_narrow<uint8_t>(a);
      case 2: return magnify_narrow<uint16_t>(a);
      case 4: return magnify_wide<uint32_t>(a);
      case 8: return magnify_wide<uint64_t>(a);
      default: break;
    }
  }
  if (a.bytes < static_cast<int64_t>(hn::Lanes(hn::ScalableTag<uint8_t>()))) return magnify_short_runs(a);
  magnify_runs(a);
}
#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sparkle::cpu {

MagnifyFunction magnify_rows(std::string_view unit) { return SPARKLE_PICK(magnify, unit); }

}  // namespace sparkle::cpu
#endif
