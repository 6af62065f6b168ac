// The loops of the pool family on CPUs, compiled once per target. window: every element of the window, several pixels or
// vectors of channels at once; large windows have a way of their own in pool_separable-inl.h.
#include "backends/cpu/pool/pool_call.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/pool/pool_kernels.cc"
#include "backends/cpu/simd/simd.h"
#include "backends/cpu/simd/simd_math-inl.h"
#include "backends/cpu/simd/lanes-inl.h"
#include "backends/cpu/pool/pool_separable-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD
namespace pool {
namespace hn = hwy::HWY_NAMESPACE;

struct PoolRow {
  const float* x;  // input element that tap (0,0,0) of pixel 0 would meet; valid only with the taps that are inside
  float* y;
  Taps t, r;
  float counted;  // average: counted elements of the plane and row axes
};

// kColumns neighbouring pixels times kVectors vectors of channels, at most 8 together; named variables for vectors without a
// fixed length.
template <class Step, int kColumns, int kVectors, bool kTail>
HWY_INLINE void window_channels(const PoolCall& call, const PoolRow& at, int64_t q, Taps s, int64_t c, int64_t count) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<hn::ScalableTag<float>>;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const Window& window = call.window;
  const int64_t step = window.stride[2] * call.mx.pixel_stride;
#define SPARKLE_POOL_EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)
#define SPARKLE_POOL_START(u) V sum##u = Step::start(d);
  SPARKLE_POOL_EACH(SPARKLE_POOL_START)
  for (int64_t t = at.t.begin; t < at.t.end; ++t)
    for (int64_t r = at.r.begin; r < at.r.end; ++r) {
      const float* x = at.x + t * window.dilation[0] * call.mx.plane_stride + r * window.dilation[1] * call.mx.row_stride +
                       (q * window.stride[2] + s.begin * window.dilation[2]) * call.mx.pixel_stride + c;
      for (int64_t i = s.begin; i < s.end; ++i) {
#define SPARKLE_POOL_STEP(u)             \
  if constexpr (u < kColumns * kVectors) \
    sum##u = Step::add(sum##u, load_some<kTail>(d, x + (u / kVectors) * step + (u % kVectors) * lanes, count));
        SPARKLE_POOL_EACH(SPARKLE_POOL_STEP)
        x += window.dilation[2] * call.mx.pixel_stride;
      }
    }
#define SPARKLE_POOL_STORE(u)                                                         \
  if constexpr (u < kColumns * kVectors)                                              \
    store_some<kTail>(Step::finish(d, sum##u, call, at.counted, q + u / kVectors), d, \
                      at.y + (q + u / kVectors) * call.my.pixel_stride + c + (u % kVectors) * lanes, count);
  SPARKLE_POOL_EACH(SPARKLE_POOL_STORE)
#undef SPARKLE_POOL_START
#undef SPARKLE_POOL_STEP
#undef SPARKLE_POOL_STORE
#undef SPARKLE_POOL_EACH
}

template <class Step, int kColumns>
HWY_NOINLINE void window_pixels(const PoolCall& call, const PoolRow& at, int64_t q, Taps s) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), channels = call.my.c;
  constexpr int kVectors = 8 / kColumns;
  int64_t c = 0;
  for (; c + kVectors * lanes <= channels; c += kVectors * lanes)
    window_channels<Step, kColumns, kVectors, false>(call, at, q, s, c, lanes);
  for (; c + lanes <= channels; c += lanes) window_channels<Step, kColumns, 1, false>(call, at, q, s, c, lanes);
  if (c < channels) window_channels<Step, kColumns, 1, true>(call, at, q, s, c, channels - c);
}

template <class Step>
void window_rows(const PoolCall& call, int64_t begin, int64_t end) {
  const Window& w = call.window;
  for (int64_t u = begin; u < end; ++u) {
    const int64_t row = u % call.my.h, z = u / call.my.h % call.my.d, n = u / (call.my.h * call.my.d);
    PoolRow at;
    at.t = taps_at(call.axes[0], z), at.r = taps_at(call.axes[1], row);
    at.counted = static_cast<float>(counted(call.axes[0], w.pad_end[0], call.count_pad, z) *
                                    counted(call.axes[1], w.pad_end[1], call.count_pad, row));
    at.x = call.x + n * call.mx.image_stride + (z * w.stride[0] - w.pad_begin[0]) * call.mx.plane_stride +
           (row * w.stride[1] - w.pad_begin[1]) * call.mx.row_stride - w.pad_begin[2] * call.mx.pixel_stride;
    at.y = call.y + n * call.my.image_stride + z * call.my.plane_stride + row * call.my.row_stride;
    for (const TapRange& range : call.columns) {
      int64_t q = range.begin;
      for (; q + 4 <= range.end; q += 4) window_pixels<Step, 4>(call, at, q, range.taps);
      for (; q + 2 <= range.end; q += 2) window_pixels<Step, 2>(call, at, q, range.taps);
      for (; q < range.end; ++q) window_pixels<Step, 1>(call, at, q, range.taps);
    }
  }
}

}  // namespace pool

void pool_window(const PoolCall& call, int64_t begin, int64_t end, float*) {
  switch (call.kind) {
    case PoolKind::max: return pool::window_rows<pool::Maximum>(call, begin, end);
    case PoolKind::average: return pool::window_rows<pool::Mean>(call, begin, end);
    case PoolKind::lp:
      return (call.squares ? pool::window_rows<pool::RootOfSquares> : pool::window_rows<pool::SumOfSizes>)(call, begin, end);
  }
}
void pool_separable(const PoolCall& call, int64_t begin, int64_t end, float* scratch) {
  pool::separable_blocks(call, begin, end, scratch);
}
#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sparkle::cpu {

int64_t counted(const Axis& axis, int64_t pad_end, bool count_pad, int64_t output) {
  Axis counting = axis;
  if (count_pad) counting.in = axis.in + axis.pad + pad_end, counting.pad = 0;  // the padded input, counted from its start
  return taps_at(counting, output).size();
}

PoolLoop pool_window_rows(std::string_view unit) { return SPARKLE_PICK(pool_window, unit); }
PoolLoop pool_separable_blocks(std::string_view unit) { return SPARKLE_PICK(pool_separable, unit); }

}  // namespace sparkle::cpu
#endif
