// Sampling at positions that are data: a thread finds the taps of one output position and makes up to kSampleChannels channels
// of it. Positions are computed in the operations of families/sample/sample.cc, rounded one by one: ties of nearest sampling
// depend on them.
#include "backends/cuda/kernels/gemm_index.cuh"
#include "backends/cuda/kernels/integers/integers.cuh"
#include "backends/cuda/kernels/moves/sample_record.h"

using namespace sparkle::cuda;

namespace {

constexpr int kChannels = 4, kTaps = 4;
constexpr int32_t kNowhere = INT32_MIN;

SPARKLE_DEVICE float difference(float a, float b) { return exact_sum(a, -b); }

struct Borders {
  float low, high;
};

SPARKLE_DEVICE float reflected(float x, const Borders& b) {
  const float range = difference(b.high, b.low);
  if (range <= 0) return b.low;
  if (x >= b.low && x <= b.high) return x;
  const float beyond = x < b.low ? difference(b.low, x) : difference(x, b.high);
  const float times = std::trunc(exact_quotient(beyond, range)), rest = difference(beyond, exact_product(times, range));
  const bool even = times - 2 * std::floor(times * 0.5f) == 0;
  return (x < b.low) == even ? exact_sum(b.low, rest) : difference(b.high, rest);
}

SPARKLE_DEVICE float clamped(float x, float low, float high) { return x < low ? low : x > high ? high : x; }

SPARKLE_DEVICE int32_t place_of(const SampleRecord& record, int32_t at, int32_t length, int32_t stride, const Borders& b) {
  if (at < 0 || at >= length) {
    if (record.padding == kSampleZeros) return kNowhere;
    if (record.padding == kSampleReflection) at = static_cast<int32_t>(reflected(static_cast<float>(at), b));
    at = at < 0 ? 0 : at < length ? at : length - 1;
  }
  return at * stride;
}

// Keys' cubic convolution, a = -0.75, at distances of up to 1, and up to 2.
SPARKLE_DEVICE float near_weight(float d) { return (1.25f * d - 2.25f) * d * d + 1; }
SPARKLE_DEVICE float far_weight(float d) { return ((-0.75f * d + 3.75f) * d - 6) * d + 3; }

struct Taps {
  int count = 1;
  int32_t place[kTaps] = {};
  float weight[kTaps] = {1, 1, 1, 1};

  SPARKLE_DEVICE Taps() {}
  SPARKLE_DEVICE Taps(const SampleRecord& record, float coordinate, int32_t size, int32_t stride) {
    const auto length = static_cast<float>(size);
    const Borders b{record.align_corners ? 0.0f : -0.5f, record.align_corners ? length - 1 : length - 0.5f};
    float x = exact_sum(coordinate, 1);
    if (record.align_corners) x = exact_product(exact_product(x, 0.5f), length - 1);
    else x = exact_product(difference(exact_product(x, length), 1), 0.5f);
    // What is no number, or too far out for an integer, lies outside like any other position.
    if (!(std::fabs(x) < 1073741824.0f)) x = x > 0 ? 2 * length + 8 : -length - 8;
    if (record.mode == kSampleNearest) x = std::rint(x);
    if (x < b.low || x > b.high) {
      if (record.padding == kSampleBorder) x = clamped(x, 0, length - 1);
      if (record.padding == kSampleReflection) x = reflected(x, b);
    }
    if (record.mode == kSampleNearest) {
      place[0] = place_of(record, static_cast<int32_t>(x), size, stride, b);
      return;
    }
    const float below = std::floor(x), t = difference(x, below);
    int32_t first = static_cast<int32_t>(below);
    if (record.mode == kSampleLinear) {
      count = 2, weight[0] = 1 - t, weight[1] = t;
    } else {
      count = 4, --first;
      weight[0] = far_weight(1 + t), weight[1] = near_weight(t), weight[2] = near_weight(1 - t), weight[3] = far_weight(2 - t);
    }
    SPARKLE_UNROLL
    for (int i = 0; i < kTaps; ++i)
      if (i < count) place[i] = place_of(record, first + i, size, stride, b);
  }
};

}  // namespace

SPARKLE_KERNEL(sparkle_sample_positions, SampleRecord, kSampleThreads, 8) {
  uint32_t rest = block_x() * kSampleThreads + thread_id();
  if (rest >= record.count) return;
  int64_t from = 0, position = 0, to = 0;
  int32_t channel = 0;
  for (int i = 0; i < record.rank; ++i) {
    const auto at = static_cast<int32_t>(fast_divmod(rest, record.size[i]));
    from += int64_t{at} * record.x_strides[i];
    position += int64_t{at} * record.grid_strides[i];
    to += int64_t{at} * record.y_strides[i];
    if (i == record.channel_axis) channel = at;
  }
  const auto coordinate = [&](int number) {
    return loaded<float>(static_cast<DType>(record.type[1]), record.grid, position + number * record.next_coordinate);
  };
  // The innermost axis is the first of the coordinates.
  const Taps c(record, coordinate(0), record.elements[2], record.strides[2]);
  const Taps b = record.spatial > 1 ? Taps(record, coordinate(1), record.elements[1], record.strides[1]) : Taps();
  const Taps a = record.spatial > 2 ? Taps(record, coordinate(2), record.elements[0], record.strides[0]) : Taps();
  float sum[kChannels] = {};
  SPARKLE_UNROLL
  for (int i = 0; i < kTaps; ++i) {
    if (i >= a.count || a.place[i] == kNowhere) continue;
    SPARKLE_UNROLL
    for (int j = 0; j < kTaps; ++j) {
      if (j >= b.count || b.place[j] == kNowhere) continue;
      SPARKLE_UNROLL
      for (int k = 0; k < kTaps; ++k) {
        if (k >= c.count || c.place[k] == kNowhere) continue;
        const float weight = a.weight[i] * b.weight[j] * c.weight[k];
        const int64_t place = from + a.place[i] + b.place[j] + c.place[k];
        SPARKLE_UNROLL
        for (int n = 0; n < kChannels; ++n)
          if (channel + n * record.groups < record.channels)
            sum[n] += weight * loaded<float>(static_cast<DType>(record.type[0]), record.x, place + n * record.next_x);
      }
    }
  }
  SPARKLE_UNROLL
  for (int n = 0; n < kChannels; ++n)
    if (channel + n * record.groups < record.channels)
      stored(static_cast<DType>(record.type[2]), record.y, to + n * record.next_y, sum[n]);
}
