// Input rows on their way into the scratch of direct convolutions: padded, in their order or as a plane per channel and phase
// of the stride; and the table of all direct kernels.
#include <algorithm>
#include <cstring>

#include "backends/cpu/direct/direct_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/direct/direct_input.cc"
#include "backends/cpu/simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD
namespace hn = hwy::HWY_NAMESPACE;

// Pixels of 2 to 4 channels that lie together, taken apart by whole vectors; returns how many pixels.
template <class D>
HWY_INLINE int64_t take_apart(D d, const float* HWY_RESTRICT x, int64_t channels, int64_t count, int64_t stride,
                              float* HWY_RESTRICT to) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<D> a, b, c, e;
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes, x += channels * lanes, to += lanes) {
    if (channels == 2) {
      hn::LoadInterleaved2(d, x, a, b);
    } else if (channels == 3) {
      hn::LoadInterleaved3(d, x, a, b, c);
    } else {
      hn::LoadInterleaved4(d, x, a, b, c, e);
    }
    hn::StoreU(a, d, to);
    hn::StoreU(b, d, to + stride);
    if (channels > 2) hn::StoreU(c, d, to + 2 * stride);
    if (channels > 3) hn::StoreU(e, d, to + 3 * stride);
  }
  return i;
}

// The other way round: planes of 2 to 4 channels put together.
template <class D>
HWY_INLINE int64_t put_together(D d, const float* HWY_RESTRICT x, int64_t channels, int64_t count, int64_t stride,
                                float* HWY_RESTRICT to) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes, x += lanes, to += channels * lanes) {
    const auto a = hn::LoadU(d, x), b = hn::LoadU(d, x + stride);
    if (channels == 2) {
      hn::StoreInterleaved2(a, b, d, to);
    } else if (channels == 3) {
      hn::StoreInterleaved3(a, b, hn::LoadU(d, x + 2 * stride), d, to);
    } else {
      hn::StoreInterleaved4(a, b, hn::LoadU(d, x + 2 * stride), hn::LoadU(d, x + 3 * stride), d, to);
    }
  }
  return i;
}

// Some of the channels of pixels, a multiple of the lanes. The next row comes into the L2: pixels far from each other share few
// sets of the L1.
template <class D>
HWY_INLINE void take_some(D d, const DirectInputCall& call, float* HWY_RESTRICT to) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float* HWY_RESTRICT x = call.x;
  const int64_t pixel = call.x_pixel, ahead = call.ahead, channels = call.channels;
  for (int64_t i = 0; i < call.columns; ++i, x += pixel, to += channels) {
    __builtin_prefetch(x + ahead, 0, 2);
    for (int64_t c = 0; c < channels; c += lanes) hn::StoreU(hn::LoadU(d, x + c), d, to + c);
  }
}

void lay_planes(const DirectInputCall& call) {
  const hn::ScalableTag<float> d;
  const DirectRow& row = call.row;
  std::memset(call.to, 0, static_cast<size_t>(row.floats) * sizeof(float));
  const bool few = call.channels > 1 && call.channels <= 4 && call.x_channel == 1 && call.x_pixel == call.channels;
  int64_t done = 0;
  if (call.stride == 1 && few) done = take_apart(d, call.x, call.channels, call.columns, row.channel, call.to + call.before);
  for (int64_t c = 0; c < call.channels; ++c) {
    const float* HWY_RESTRICT x = call.x + c * call.x_channel;
    float* HWY_RESTRICT to = call.to + c * row.channel;
    int64_t i = done;
    if (call.stride == 1 && call.x_pixel == 1 && call.columns > i) {
      std::memcpy(to + call.before + i, x + i, static_cast<size_t>(call.columns - i) * sizeof(float));
      continue;
    }
    if (call.stride == 2 && call.x_pixel == 1 && call.columns > 0) {
      // Even columns of the row go to the first plane.
      if (call.before % 2 == 1) to[row.phase + call.before / 2] = x[i], ++i;
      i += 2 * take_apart(d, x + i, 2, (call.columns - i) / 2, row.phase, to + (call.before + i) / 2);
    }
    // One by one, each phase on its own: the columns i, i + stride, ...
    for (const int64_t end = i + call.stride; i < end; ++i) {
      float* HWY_RESTRICT plane = to + (call.before + i) % call.stride * row.phase + (call.before + i) / call.stride;
      for (int64_t j = i; j < call.columns; j += call.stride) *plane++ = x[j * call.x_pixel];
    }
  }
}

void lay_row(const DirectInputCall& call) {
  const hn::ScalableTag<float> d;
  const int64_t channels = call.channels, begin = call.before * channels, end = begin + call.columns * channels;
  std::fill_n(call.to, begin, 0.0f);
  float* HWY_RESTRICT to = call.to + begin;
  int64_t i = 0;
  if (call.x_channel == 1 && call.x_pixel == channels) {
    if (call.columns > 0) std::memcpy(to, call.x, static_cast<size_t>(end - begin) * sizeof(float));
    i = call.columns;
  } else if (channels > 1 && channels <= 4 && call.x_pixel == 1) {
    i = put_together(d, call.x, channels, call.columns, call.x_channel, to);
  } else if (call.x_channel == 1 && channels <= 16 && channels % 4 == 0) {  // some of the channels of pixels
    const hn::CappedTag<float, 4> four;
    if (channels % static_cast<int64_t>(hn::Lanes(d)) == 0) {
      take_some(d, call, to);
    } else {
      take_some(four, call, to);
    }
    i = call.columns;
  }
  for (; i < call.columns; ++i)
    for (int64_t c = 0; c < channels; ++c) to[i * channels + c] = call.x[i * call.x_pixel + c * call.x_channel];
  std::fill(call.to + end, call.to + call.row.floats, 0.0f);
}

void fill_inputs(DirectKernels& kernels) { kernels.lay_planes = lay_planes, kernels.lay_row = lay_row; }
#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sparkle::cpu {
namespace {

DirectKernels filled(std::string_view unit) {
  DirectKernels kernels;
  for (const DirectFill fill :
       {SPARKLE_PICK(fill_inputs, unit), direct_pixels_of(unit), direct_maps_of(unit), direct_slide_of(unit)})
    if (fill) fill(kernels);
  return kernels;
}

template <int kUnit>
const DirectKernels* made(std::string_view unit) {
  static const DirectKernels kernels = filled(unit);
  return kernels.lanes > 0 ? &kernels : nullptr;
}

}  // namespace

// Made when first asked for: the functions of a unit run on machines that have it.
const DirectKernels* direct_kernels_of(std::string_view unit) {
  if (unit == "avx512") return made<0>(unit);
  if (unit == "avx2") return made<1>(unit);
  if (unit == "sve") return made<2>(unit);
  if (unit == "neon") return made<3>(unit);
  return nullptr;
}

}  // namespace sparkle::cpu
#endif
