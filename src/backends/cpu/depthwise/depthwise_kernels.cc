// The loops of the depthwise family on CPUs, compiled once per target: the general one for any filter here, the register tiles
// for 3x3, 5x5 and 7x7 in depthwise_tile-inl.h.
#include "backends/cpu/depthwise/depthwise_call.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/depthwise/depthwise_kernels.cc"
#include "backends/cpu/simd/simd.h"
#include "backends/cpu/simd/simd_math-inl.h"
#include "backends/cpu/simd/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD
namespace depthwise {
namespace hn = hwy::HWY_NAMESPACE;

// to[0..count) += from[0..count)
HWY_INLINE void add_channels(float* HWY_RESTRICT to, const float* HWY_RESTRICT from, int64_t count) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(hn::Add(hn::LoadU(d, to + i), hn::LoadU(d, from + i)), d, to + i);
  for (; i < count; ++i) to[i] += from[i];
}

// Residuals and activation of the pixels [q0,q1) and channels [c0,c1) of one row, whose sums have just been stored.
struct OutputRow {
  int64_t n, z, row;
};
HWY_NOINLINE void finish_pixels(const DepthwiseCall& call, const OutputRow& at, int64_t q0, int64_t q1, int64_t c0,
                                int64_t c1) {
  for (int64_t q = q0; q < q1; ++q) {
    const auto place = [&](const FeatureMap& m) {
      return at.n * m.image_stride + at.z * m.plane_stride + at.row * m.row_stride + q * m.pixel_stride + c0;
    };
    float* y = call.y + place(call.my);
    const auto add = [&](int i) { add_channels(y, call.residuals[i].data + place(call.residuals[i].map), c1 - c0); };
    for (int i = 0; i < call.residuals_before; ++i) add(i);
    simd_math::activate_strip(call.activation, call.a, call.b, y, static_cast<size_t>(c1 - c0));
    for (int i = 0; i < call.residuals_after; ++i) add(call.residuals_before + i);
  }
}

// The row being computed and the taps of its planes and rows that lie inside the input.
struct WindowRow {
  const float* x;  // input element that tap (0,0,0) of pixel 0 would meet; valid only with the taps that are inside
  float* y;
  Taps t, r;
};

template <int kIndex, class V>
HWY_INLINE V choose(V a, V b, V c, V d) {
  if constexpr (kIndex == 0) return a;
  if constexpr (kIndex == 1) return b;
  if constexpr (kIndex == 2) return c;
  if constexpr (kIndex == 3) return d;
}

// Where several outputs share an input channel: the place of each lane's channel behind the first lane's. The table of channels
// is as long as whole vectors.
template <bool kSpread, class D>
HWY_INLINE auto lanes_of_channels(D d, const DepthwiseCall& call, int64_t k) {
  const hn::RebindToSigned<D> di;
  if constexpr (kSpread) {
    return hn::IndicesFromVec(d, hn::Sub(hn::LoadU(di, call.channel + k), hn::Set(di, call.channel[k])));
  } else {
    return hn::IndicesFromVec(d, hn::Iota(di, 0));
  }
}

template <bool kTail, bool kSpread, class D, class Indices>
HWY_INLINE hn::Vec<D> load_input(D d, const DepthwiseCall& call, const float* pixel, int64_t k, int64_t count, Indices lanes) {
  if constexpr (kSpread) {
    const int32_t first = call.channel[k], last = call.channel[k + static_cast<int64_t>(hn::Lanes(d)) - 1];
    return hn::TableLookupLanes(load_lanes(d, pixel + first, last - first + 1), lanes);
  } else {
    return load_some<kTail>(d, pixel + k, count);
  }
}

// kColumns neighbouring pixels times kVectors vectors of channels: their product is at most 8. Named variables, for vectors
// without a fixed length cannot lie in arrays.
template <int kColumns, int kVectors, bool kTail, bool kSpread>
HWY_INLINE void window_channels(const DepthwiseCall& call, const WindowRow& at, int64_t q, Taps s, int64_t c, int64_t count) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<hn::ScalableTag<float>>;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const Window& window = call.window;
  const int64_t step = window.stride[2] * call.mx.pixel_stride;
#define SPARKLE_DW_EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)
#define SPARKLE_DW_START(u) V sum##u = hn::Zero(d);
  SPARKLE_DW_EACH(SPARKLE_DW_START)
  const auto lanes0 = lanes_of_channels<kSpread>(d, call, c);
  const auto lanes1 = lanes_of_channels<kSpread>(d, call, kVectors > 1 ? c + lanes : c);
  const auto lanes2 = lanes_of_channels<kSpread>(d, call, kVectors > 2 ? c + 2 * lanes : c);
  const auto lanes3 = lanes_of_channels<kSpread>(d, call, kVectors > 3 ? c + 3 * lanes : c);

  for (int64_t t = at.t.begin; t < at.t.end; ++t)
    for (int64_t r = at.r.begin; r < at.r.end; ++r) {
      const float* x = at.x + t * window.dilation[0] * call.mx.plane_stride + r * window.dilation[1] * call.mx.row_stride +
                       (q * window.stride[2] + s.begin * window.dilation[2]) * call.mx.pixel_stride;
      const float* w = call.w + ((t * window.filter[1] + r) * window.filter[2] + s.begin) * call.k_strides + c;
      for (int64_t i = s.begin; i < s.end; ++i) {
        const V w0 = hn::LoadU(d, w);
        const V w1 = kVectors > 1 ? hn::LoadU(d, w + lanes) : w0;
        const V w2 = kVectors > 2 ? hn::LoadU(d, w + 2 * lanes) : w0;
        const V w3 = kVectors > 3 ? hn::LoadU(d, w + 3 * lanes) : w0;
#define SPARKLE_DW_STEP(u)                                                                                            \
  if constexpr (u < kColumns * kVectors) {                                                                            \
    const V pixel = load_input<kTail, kSpread>(d, call, x + (u / kVectors) * step, c + (u % kVectors) * lanes, count, \
                                               choose<u % kVectors>(lanes0, lanes1, lanes2, lanes3));                 \
    sum##u = hn::MulAdd(choose<u % kVectors>(w0, w1, w2, w3), pixel, sum##u);                                         \
  }
        SPARKLE_DW_EACH(SPARKLE_DW_STEP)
        x += window.dilation[2] * call.mx.pixel_stride;
        w += call.k_strides;
      }
    }

  const V low = hn::Set(d, call.low), high = hn::Set(d, call.high);
#define SPARKLE_DW_STORE(u)                                                                    \
  if constexpr (u < kColumns * kVectors) {                                                     \
    const int64_t k = c + (u % kVectors) * lanes;                                              \
    if (call.scale) sum##u = hn::Mul(sum##u, load_some<kTail>(d, call.scale + k, count));      \
    if (call.bias) sum##u = hn::Add(sum##u, load_some<kTail>(d, call.bias + k, count));        \
    if (call.clamp) sum##u = simd_math::at_most(simd_math::at_least(sum##u, low), high);       \
    store_some<kTail>(sum##u, d, at.y + (q + u / kVectors) * call.my.pixel_stride + k, count); \
  }
  SPARKLE_DW_EACH(SPARKLE_DW_STORE)
#undef SPARKLE_DW_START
#undef SPARKLE_DW_STEP
#undef SPARKLE_DW_STORE
#undef SPARKLE_DW_EACH
}

// kColumns pixels, all channels: several vectors at once where few pixels alone could not hide the latency of the sums.
template <int kColumns, bool kSpread>
HWY_NOINLINE void window_pixels(const DepthwiseCall& call, const WindowRow& at, int64_t q, Taps s) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), channels = call.my.c;
  constexpr int kVectors = kColumns >= 8 ? 1 : kColumns >= 4 ? 2 : 4;
  int64_t c = 0;
  for (; c + kVectors * lanes <= channels; c += kVectors * lanes)
    window_channels<kColumns, kVectors, false, kSpread>(call, at, q, s, c, lanes);
  for (; c + lanes <= channels; c += lanes) window_channels<kColumns, 1, false, kSpread>(call, at, q, s, c, lanes);
  if (c < channels) window_channels<kColumns, 1, true, kSpread>(call, at, q, s, c, channels - c);
}

template <bool kSpread>
void window_rows(const DepthwiseCall& call, int64_t begin, int64_t end) {
  for (int64_t u = begin; u < end; ++u) {
    const int64_t row = u % call.my.h, z = u / call.my.h % call.my.d, n = u / (call.my.h * call.my.d);
    WindowRow at;
    at.t = taps_at(call.axes[0], z), at.r = taps_at(call.axes[1], row);
    at.x = call.x + n * call.mx.image_stride + (z * call.window.stride[0] - call.window.pad_begin[0]) * call.mx.plane_stride +
           (row * call.window.stride[1] - call.window.pad_begin[1]) * call.mx.row_stride -
           call.window.pad_begin[2] * call.mx.pixel_stride;
    at.y = call.y + n * call.my.image_stride + z * call.my.plane_stride + row * call.my.row_stride;
    for (const TapRange& range : call.columns) {
      int64_t q = range.begin;
      for (; q + 8 <= range.end; q += 8) window_pixels<8, kSpread>(call, at, q, range.taps);
      for (; q + 4 <= range.end; q += 4) window_pixels<4, kSpread>(call, at, q, range.taps);
      for (; q + 2 <= range.end; q += 2) window_pixels<2, kSpread>(call, at, q, range.taps);
      for (; q < range.end; ++q) window_pixels<1, kSpread>(call, at, q, range.taps);
    }
    if (call.strip) finish_pixels(call, {n, z, row}, 0, call.my.w, 0, call.my.c);
  }
}

}  // namespace depthwise
#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#include "backends/cpu/depthwise/depthwise_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD
void depthwise_window(const DepthwiseCall& call, int64_t begin, int64_t end) {
  (call.channel ? depthwise::window_rows<true> : depthwise::window_rows<false>)(call, begin, end);
}

// nullptr where there is no tile for the filter on this target.
DepthwiseRows depthwise_tile(int64_t filter, int64_t stride) {
#if !HWY_HAVE_SCALABLE
  if (filter == 3 && stride == 1) return depthwise::tile_rows<3, 1>;
  if (filter == 3 && stride == 2) return depthwise::tile_rows<3, 2>;
  if (filter == 5 && stride == 1) return depthwise::tile_rows<5, 1>;
  if (filter == 5 && stride == 2) return depthwise::tile_rows<5, 2>;
  if (filter == 7 && stride == 1) return depthwise::tile_rows<7, 1>;
  if (filter == 7 && stride == 2) return depthwise::tile_rows<7, 2>;
#else
  (void)filter, (void)stride;
#endif
  return nullptr;
}
#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sparkle::cpu {

DepthwiseRows depthwise_window_rows(std::string_view unit) { return SPARKLE_PICK(depthwise_window, unit); }

DepthwiseRows depthwise_tile_rows(std::string_view unit, int64_t filter, int64_t stride) {
  const auto choose = SPARKLE_PICK(depthwise_tile, unit);
  return choose ? choose(filter, stride) : nullptr;
}

}  // namespace sparkle::cpu
#endif
