#include "backends/cpu/grouped/grouped_rows.h"

#include <algorithm>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/grouped/grouped_rows.cc"
#include "backends/cpu/simd/simd.h"
// must come after simd.h
#include "backends/cpu/simd/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD && !HWY_HAVE_SCALABLE
namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(hn::ScalableTag<float>()));

// Lane l of the j-th vector of a column takes channel j of the group that filter l belongs to.
template <int kDepth>
void spread_groups(const SpreadCall& call) {
  const hn::ScalableTag<float> d;
  using Indices = decltype(hn::SetTableIndices(d, static_cast<const int32_t*>(nullptr)));
  int32_t lane[kLanes];
  Indices indices[kDepth];
  for (int j = 0; j < kDepth; ++j) {
    for (int l = 0; l < kLanes; ++l) lane[l] = l / kDepth * kDepth + j;
    indices[j] = hn::SetTableIndices(d, lane);
  }
  float* HWY_RESTRICT to = call.to;
  const auto zeros = [&](int64_t columns) HWY_ATTR {
    for (int64_t i = 0; i < columns * kDepth; ++i, to += kLanes) hn::StoreU(hn::Zero(d), d, to);
  };
  zeros(call.before);
  const float* HWY_RESTRICT x = call.x;
  const bool whole = call.channels == kLanes;
  for (int64_t i = 0; i < call.columns; ++i, x += call.x_stride) {
    __builtin_prefetch(x + call.ahead, 0, 3);
    const auto v = HWY_LIKELY(whole) ? hn::LoadU(d, x) : load_lanes(d, x, call.channels);
    for (int j = 0; j < kDepth; ++j, to += kLanes) hn::StoreU(hn::TableLookupLanes(v, indices[j]), d, to);
  }
  zeros(call.after);
}

void spread(const SpreadCall& call) {
  switch (call.depth) {
    case 1: return spread_groups<1>(call);
    case 2: return spread_groups<2>(call);
    case 4: return spread_groups<4>(call);
    case 8:
      if constexpr (kLanes >= 8) return spread_groups<8>(call);
      return;
    case 16:
      if constexpr (kLanes >= 16) return spread_groups<16>(call);
      return;
    default: return;
  }
}

// Columns as they are.
void copy(const SpreadCall& call) {
  const hn::ScalableTag<float> d;
  float* HWY_RESTRICT to = call.to;
  for (int64_t i = 0; i < call.before; ++i, to += kLanes) hn::StoreU(hn::Zero(d), d, to);
  const float* HWY_RESTRICT x = call.x;
  const bool whole = call.channels == kLanes;
  for (int64_t i = 0; i < call.columns; ++i, x += call.x_stride, to += kLanes) {
    __builtin_prefetch(x + call.ahead, 0, 2);
    hn::StoreU(HWY_LIKELY(whole) ? hn::LoadU(d, x) : load_lanes(d, x, call.channels), d, to);
  }
  for (int64_t i = 0; i < call.after; ++i, to += kLanes) hn::StoreU(hn::Zero(d), d, to);
}

// What filters of channel j of their groups multiply: a vector of the ring for each channel, or lanes of the one that there is.
template <bool kPermute>
struct ChannelReader {
  using D = hn::ScalableTag<float>;
  using Indices = decltype(hn::SetTableIndices(D(), static_cast<const int32_t*>(nullptr)));

  ChannelReader(const GroupedCall& call, int64_t j) : indices(hn::SetTableIndices(D(), call.lanes + j * kLanes)) {}
  HWY_INLINE hn::Vec<D> operator()(const float* x) const { return hn::TableLookupLanes(hn::LoadU(D(), x), indices); }
  static constexpr int64_t kStep = 0;  // floats of the ring between channels

  Indices indices;
};
template <>
struct ChannelReader<false> {
  using D = hn::ScalableTag<float>;
  ChannelReader(const GroupedCall&, int64_t) {}
  HWY_INLINE hn::Vec<D> operator()(const float* x) const { return hn::LoadU(D(), x); }
  static constexpr int64_t kStep = kLanes;
};

template <int kPixels, class V>
HWY_INLINE void finish_sums(const GroupedCall& call, V (&sum)[kPixels]) {
  const hn::ScalableTag<float> d;
  if (call.finish) {
    const V bias = hn::LoadU(d, call.bias);
    for (int p = 0; p < kPixels; ++p) sum[p] = hn::Add(sum[p], bias);
    // The sum is the second argument: x86 then hands a NaN on.
    if (call.clamp_below)
      for (int p = 0; p < kPixels; ++p) sum[p] = hn::Max(hn::Set(d, call.low), sum[p]);
    if (call.clamp_above)
      for (int p = 0; p < kPixels; ++p) sum[p] = hn::Min(hn::Set(d, call.high), sum[p]);
  }
  for (int p = 0; p < kPixels; ++p) hn::StoreU(sum[p], d, call.y + p * call.y_stride);
}

// Three taps next to each other: each input is loaded once for all outputs that see it. The loads of one input per product
// would take longer than the products.
template <int kPixels, int kStride, bool kPermute>
void slide(const GroupedCall& call) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  V sum[kPixels];
  for (int p = 0; p < kPixels; ++p) {
    __builtin_prefetch(call.y + p * call.y_stride, 1, 3);
    sum[p] = hn::Zero(d);
  }
  const int64_t column = call.x_tap, tap = call.depth * kLanes;
  for (int r = 0; r < call.rows; ++r) {
    const float* HWY_RESTRICT w = call.weights[r];
    for (int64_t j = 0; j < call.depth; ++j, w += kLanes) {
      const V w0 = hn::LoadU(d, w), w1 = hn::LoadU(d, w + tap), w2 = hn::LoadU(d, w + 2 * tap);
      const ChannelReader<kPermute> read(call, j);
      const float* HWY_RESTRICT x = call.x[r] + j * read.kStep;
#pragma GCC unroll 25
      for (int c = 0; c < (kPixels - 1) * kStride + 3; ++c, x += column) {
        __asm__ __volatile__("" ::: "memory");  // each column's load stays where it is
        const V v = read(x);
        // Output p sees the inputs p * stride, + 1 and + 2.
        const auto add = [&](int tap, V weight) HWY_ATTR {
          const int p = (c - tap) / kStride;
          if (c < tap || (c - tap) % kStride != 0 || p >= kPixels) return;
          sum[p] = hn::MulAdd(v, weight, sum[p]);
          keep_order(sum[p]);
        };
        add(0, w0), add(1, w1), add(2, w2);
      }
    }
  }
  finish_sums(call, sum);
}

template <int kPixels, bool kPermute>
void sums(const GroupedCall& call) {
  if (call.taps == 3 && call.x_pixel == call.x_tap) return slide<kPixels, 1, kPermute>(call);
  if (call.taps == 3 && call.x_pixel == 2 * call.x_tap) return slide<kPixels, 2, kPermute>(call);
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  V sum[kPixels];
  for (int p = 0; p < kPixels; ++p) sum[p] = hn::Zero(d);
  const int64_t pixel = call.x_pixel;
  for (int r = 0; r < call.rows; ++r) {
    const float* HWY_RESTRICT w = call.weights[r];
    for (int64_t s = 0; s < call.taps; ++s) {
      // Every third output has a pointer: the scaled index of x86 addresses its two neighbours too.
      const float* x0 = call.x[r] + s * call.x_tap;
      const float *x3 = x0 + 3 * pixel, *x6 = x0 + 6 * pixel, *x9 = x0 + 9 * pixel;
      for (int64_t j = 0; j < call.depth; ++j) {
        const ChannelReader<kPermute> read(call, j);
        const V weight = hn::LoadU(d, w);
#pragma GCC unroll 12
        for (int p = 0; p < kPixels; ++p) {
          const float* x = p < 3 ? x0 : p < 6 ? x3 : p < 9 ? x6 : x9;
          sum[p] = hn::MulAdd(read(x + p % 3 * pixel), weight, sum[p]);
          keep_order(sum[p]);
        }
        w += kLanes, x0 += read.kStep, x3 += read.kStep, x6 += read.kStep, x9 += read.kStep;
      }
    }
  }
  finish_sums(call, sum);
}

template <int... kIndex>
GroupedKernels all_kernels(std::integer_sequence<int, kIndex...>) {
  // The lanes' origins take a register too.
  constexpr int kMost = SPARKLE_REGISTERS >= 32 ? kMostGroupedPixels : kMostGroupedPixels - 2;
  return {kLanes, spread, copy, {sums<kIndex + 1, false>...}, {sums<std::min(kIndex + 1, kMost), true>...}, kMost};
}

const GroupedKernels* grouped_kernels() {
  static const GroupedKernels kernels = all_kernels(std::make_integer_sequence<int, kMostGroupedPixels>());
  return &kernels;
}
#elif SPARKLE_SIMD
const GroupedKernels* grouped_kernels() { return nullptr; }
#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sparkle::cpu {
const GroupedKernels* grouped_kernels_of(std::string_view unit) {
  const auto make = SPARKLE_PICK(grouped_kernels, unit);
  return make ? make() : nullptr;
}
}  // namespace sparkle::cpu
#endif
