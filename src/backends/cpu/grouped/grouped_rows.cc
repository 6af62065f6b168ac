#include "backends/cpu/grouped/grouped_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/grouped/grouped_rows.cc"
#include "backends/cpu/simd.h"
// must come after simd.h
#include "backends/cpu/lanes-inl.h"

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
  for (int64_t i = 0; i < call.columns; ++i, x += call.x_pitch) {
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
  for (int p = 0; p < kPixels; ++p) hn::StoreU(sum[p], d, call.y + p * call.y_pitch);
}

// Three taps next to each other: each input is loaded once for all outputs that see it. The loads of one input per product
// would take longer than the products.
template <int kPixels, int kStride>
void slide(const GroupedCall& call) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  V sum[kPixels];
  for (int p = 0; p < kPixels; ++p) sum[p] = hn::Zero(d);
  const int64_t column = call.x_tap, tap = call.depth * kLanes;
  for (int r = 0; r < call.rows; ++r) {
    const float* HWY_RESTRICT w = call.weights[r];
    for (int64_t j = 0; j < call.depth; ++j, w += kLanes) {
      const V w0 = hn::LoadU(d, w), w1 = hn::LoadU(d, w + tap), w2 = hn::LoadU(d, w + 2 * tap);
      const float* HWY_RESTRICT x = call.x[r] + j * kLanes;
#pragma GCC unroll 25
      for (int c = 0; c < (kPixels - 1) * kStride + 3; ++c, x += column) {
        const V v = hn::LoadU(d, x);
        // Output p sees the inputs p * stride, + 1 and + 2.
        if (c % kStride == 0 && c / kStride < kPixels) sum[c / kStride] = hn::MulAdd(v, w0, sum[c / kStride]);
        if (c >= 1 && (c - 1) % kStride == 0 && (c - 1) / kStride < kPixels)
          sum[(c - 1) / kStride] = hn::MulAdd(v, w1, sum[(c - 1) / kStride]);
        if (c >= 2 && (c - 2) % kStride == 0 && (c - 2) / kStride < kPixels)
          sum[(c - 2) / kStride] = hn::MulAdd(v, w2, sum[(c - 2) / kStride]);
      }
    }
  }
  finish_sums(call, sum);
}

template <int kPixels>
void sums(const GroupedCall& call) {
  if (call.taps == 3 && call.x_pixel == call.x_tap) return slide<kPixels, 1>(call);
  if (call.taps == 3 && call.x_pixel == 2 * call.x_tap) return slide<kPixels, 2>(call);
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
        const V weight = hn::LoadU(d, w);
#pragma GCC unroll 12
        for (int p = 0; p < kPixels; ++p) {
          const float* x = p < 3 ? x0 : p < 6 ? x3 : p < 9 ? x6 : x9;
          sum[p] = hn::MulAdd(hn::LoadU(d, x + p % 3 * pixel), weight, sum[p]);
        }
        w += kLanes, x0 += kLanes, x3 += kLanes, x6 += kLanes, x9 += kLanes;
      }
    }
  }
  finish_sums(call, sum);
}

const GroupedKernels* grouped_kernels() {
  static const GroupedKernels kernels = {
      kLanes,
      spread,
      {sums<1>, sums<2>, sums<3>, sums<4>, sums<5>, sums<6>, sums<7>, sums<8>, sums<9>, sums<10>, sums<11>, sums<12>}};
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
