// Maxima over large windows at stride 1: first down the rows into a scratch strip, then along the columns. Neighbouring windows
// of one axis share most of their elements: for 8 outputs of a reach of 13 the middle 6 elements belong to all of them and are
// compared once, running maxima over the 7 to the left and the 7 to the right give the rest: 4 comparisons an output instead of
// 12 (the scheme of van Herk and of Gil and Werman, unrolled in registers).
#if defined(SPARKLE_POOL_SEPARABLE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARKLE_POOL_SEPARABLE_INL_H
#undef SPARKLE_POOL_SEPARABLE_INL_H
#else
#define SPARKLE_POOL_SEPARABLE_INL_H
#endif

#include "backends/cpu/simd/lanes-inl.h"
#include "backends/cpu/pool/pool_call.h"
#include "backends/cpu/pool/pool_steps-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD
namespace pool {
namespace hn = hwy::HWY_NAMESPACE;

// One axis of a plane: coordinate 0 of the input, distance of neighbours, the coordinate where the first output's window
// begins.
struct Line {
  const float* x;
  int64_t stride, size, first;
  int64_t filter;
  float* y;
  int64_t y_stride;
};

template <bool kEdge, bool kTail, class D>
HWY_INLINE hn::Vec<D> element(D d, const Line& line, int64_t j, int64_t c, int64_t count) {
  const int64_t at = line.first + j;
  if (kEdge && (at < 0 || at >= line.size)) return Maximum::start(d);
  return load_some<kTail>(d, line.x + at * line.stride + c, count);
}

// kOutputs neighbouring outputs of a line: 1, or 4 or 8 where the filter is at least as long.
template <int kOutputs, bool kEdge, bool kTail>
HWY_INLINE void slide(const Line& line, int64_t c, int64_t count) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<hn::ScalableTag<float>>;
  const auto load = [&](int64_t j) HWY_ATTR { return element<kEdge, kTail>(d, line, j, c, count); };
  const auto store = [&](int64_t o, V v) HWY_ATTR { store_some<kTail>(v, d, line.y + o * line.y_stride + c, count); };
  V middle = load(kOutputs - 1);
  for (int64_t j = kOutputs; j < line.filter; ++j) middle = Maximum::add(middle, load(j));
  if constexpr (kOutputs == 1) {
    store(0, middle);
  } else {
    // Output o covers [o, o + filter): left of the middle the elements o..kOutputs-2, right of it filter..filter+o-1.
    constexpr int kLast = kOutputs - 1;
    V left = load(kLast - 1);
    V m0 = middle, m1 = middle, m2 = middle, m3 = middle, m4 = middle, m5 = middle, m6 = middle;
#define SPARKLE_POOL_LEFT(o)                                         \
  if constexpr (o < kLast) {                                         \
    if constexpr (o < kLast - 1) left = Maximum::add(left, load(o)); \
    m##o = Maximum::add(middle, left);                               \
  }
    // clang-format off
    SPARKLE_POOL_LEFT(6) SPARKLE_POOL_LEFT(5) SPARKLE_POOL_LEFT(4) SPARKLE_POOL_LEFT(3)
    SPARKLE_POOL_LEFT(2) SPARKLE_POOL_LEFT(1) SPARKLE_POOL_LEFT(0)
#undef SPARKLE_POOL_LEFT
        // clang-format on
        store(0, m0);
    V right = load(line.filter);
#define SPARKLE_POOL_RIGHT(o)                                                    \
  if constexpr (o <= kLast) {                                                    \
    if constexpr (o > 1) right = Maximum::add(right, load(line.filter + o - 1)); \
    store(o, Maximum::add(m##o, right));                                         \
  }
    V m7 = middle;
    if constexpr (kLast == 3) m3 = middle;
    // clang-format off
    SPARKLE_POOL_RIGHT(1) SPARKLE_POOL_RIGHT(2) SPARKLE_POOL_RIGHT(3) SPARKLE_POOL_RIGHT(4)
    SPARKLE_POOL_RIGHT(5) SPARKLE_POOL_RIGHT(6) SPARKLE_POOL_RIGHT(7)
#undef SPARKLE_POOL_RIGHT
        // clang-format on
        (void) m4,
        (void)m5, (void)m6, (void)m7;
  }
}

template <int kOutputs, bool kEdge>
HWY_NOINLINE void slide_channels(const Line& line, int64_t channels) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t c = 0;
  for (; c + lanes <= channels; c += lanes) slide<kOutputs, kEdge, false>(line, c, lanes);
  if (c < channels) slide<kOutputs, kEdge, true>(line, c, channels - c);
}

template <int kOutputs>
void slide_outputs(const Line& line, int64_t channels) {
  const bool edge = line.first < 0 || line.first + kOutputs - 1 + line.filter > line.size;
  (edge ? slide_channels<kOutputs, true> : slide_channels<kOutputs, false>)(line, channels);
}

// How many outputs the next step along a line takes.
inline int64_t step_of(int64_t filter, int64_t left) { return left >= 8 && filter >= 8 ? 8 : left >= 4 && filter >= 4 ? 4 : 1; }

inline void slide_step(int64_t outputs, const Line& line, int64_t channels) {
  if (outputs == 8) {
    slide_outputs<8>(line, channels);
  } else if (outputs == 4) {
    slide_outputs<4>(line, channels);
  } else {
    slide_outputs<1>(line, channels);
  }
}

// Blocks of eight output rows times call.channels_per_block channels of one plane.
inline void separable_blocks(const PoolCall& call, int64_t begin, int64_t end, float* scratch) {
  const Window& w = call.window;
  const int64_t channel_blocks = (call.my.c + call.channels_per_block - 1) / call.channels_per_block;
  const int64_t row_blocks = (call.my.h + kPoolRowsPerBlock - 1) / kPoolRowsPerBlock;
  for (int64_t u = begin; u < end; ++u) {
    const int64_t c = u % channel_blocks * call.channels_per_block, channels = std::min(call.channels_per_block, call.my.c - c);
    const int64_t plane = u / channel_blocks / row_blocks, z = plane % call.my.d, n = plane / call.my.d;
    const int64_t row_begin = u / channel_blocks % row_blocks * kPoolRowsPerBlock;
    const int64_t row_end = std::min(row_begin + kPoolRowsPerBlock, call.my.h);
    const int64_t depth = z * w.stride[0] - w.pad_begin[0];
    const bool inside = depth >= 0 && depth < call.mx.d;
    const float* x = call.x + n * call.mx.image_stride + depth * call.mx.plane_stride + c;
    float* y = call.y + n * call.my.image_stride + z * call.my.plane_stride + c;
    const int64_t row_stride = call.mx.w * call.channels_per_block;

    for (int64_t row = row_begin; row < row_end;) {
      const int64_t rows = step_of(w.filter[1], row_end - row);
      for (int64_t column = 0; column < call.mx.w; ++column)
        slide_step(rows,
                   {x + column * call.mx.pixel_stride, call.mx.row_stride, inside ? call.mx.h : 0, row - w.pad_begin[1],
                    w.filter[1], scratch + (row - row_begin) * row_stride + column * call.channels_per_block, row_stride},
                   channels);
      row += rows;
    }
    for (int64_t row = row_begin; row < row_end; ++row)
      for (int64_t q = 0; q < call.my.w;) {
        const int64_t columns = step_of(w.filter[2], call.my.w - q);
        slide_step(columns,
                   {scratch + (row - row_begin) * row_stride, call.channels_per_block, call.mx.w, q - w.pad_begin[2],
                    w.filter[2], y + row * call.my.row_stride + q * call.my.pixel_stride, call.my.pixel_stride},
                   channels);
        q += columns;
      }
  }
}

}  // namespace pool
#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
