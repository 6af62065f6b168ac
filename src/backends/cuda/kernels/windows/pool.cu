// Maxima (with their positions, where they are asked for), means and power means of windows; kind: the number of PoolKind.
#include "backends/cuda/kernels/windows/window.cuh"

using namespace sparkle::cuda;

namespace {

// Whole powers by products: pow() would lose digits.
SPARKLE_DEVICE float power_of(float x, int32_t p) {
  float result = 1;
  for (; p > 0; p >>= 1, x *= x)
    if (p & 1) result *= x;
  return result;
}
// The root of that power: a first guess, and a step of Newton's.
SPARKLE_DEVICE float root_of(float x, int32_t p) {
  if (p == 1) return x;
  if (p == 2) return std::sqrt(x);
  if (x <= 0) return x;
  const float n = static_cast<float>(p), guess = std::exp2(std::log2(x) / n);
  return guess * ((n - 1) + x / power_of(guess, p)) / n;
}
// Taps of a window that end before the padding does, along one axis.
SPARKLE_DEVICE int32_t taps_counted(const WindowRecord& record, int32_t at, int axis) {
  int32_t count = 0;
  for (int32_t t = 0; t < record.filter[axis]; ++t)
    count += at + t * record.dilation[axis] < record.x_size[axis] + record.pad_end[axis];
  return count;
}

template <int kWidth>
SPARKLE_DEVICE void pool_window(const WindowRecord& record) {
  const uint32_t index = block_x() * kWindowThreads + thread_id();
  if (index >= record.count) return;
  const OutputOfThread o = OutputOfThread::at<kWidth>(record, index);
  const uint8_t kind = record.kind;
  Channels<kWidth> best, sum;
  int64_t position = 0;
  SPARKLE_UNROLL
  for (int i = 0; i < kWidth; ++i) best.v[i] = -INFINITY, sum.v[i] = 0;
  int32_t count = 0;
  o.for_each_tap(record, o.channel, [&](int64_t at, int32_t d, int32_t h, int32_t w, int32_t, int32_t, int32_t) {
    const Channels<kWidth> x = load_channels<kWidth>(record, record.x, at);
    SPARKLE_UNROLL
    for (int i = 0; i < kWidth; ++i) {
      if (kind == 0) {
        // The first of equals stays; a NaN takes the place of numbers, and keeps it.
        const bool goes_before = best.v[i] == best.v[i] && (x.v[i] > best.v[i] || x.v[i] != x.v[i] || (kWidth == 1 && count == 0));
        if (goes_before) best.v[i] = x.v[i];
        if (kWidth == 1 && goes_before) position = (int64_t{d} * record.x_size[1] + h) * record.x_size[2] + w;
      } else {
        sum.v[i] += kind == 1 ? x.v[i] : power_of(std::fabs(x.v[i]), record.power);
      }
    }
    ++count;
  });
  if (kind == 1 && record.count_pad)
    count = taps_counted(record, o.origin[0], 0) * taps_counted(record, o.origin[1], 1) * taps_counted(record, o.origin[2], 2);
  SPARKLE_UNROLL
  for (int i = 0; i < kWidth; ++i) {
    if (kind == 1) best.v[i] = sum.v[i] / static_cast<float>(count);
    if (kind == 2) best.v[i] = root_of(sum.v[i], record.power);
  }
  store_channels<kWidth>(record, record.y, o.place(record.y_strides) + int64_t{o.channel} * record.y_channel, best);
  if (kWidth == 1 && record.positions != nullptr) {
    const int64_t plane = int64_t{record.x_size[0]} * record.x_size[1] * record.x_size[2];
    const int64_t channels = record.channels.size;
    store_global(record.positions + o.place(record.i_strides) + int64_t{o.channel} * record.i_channel,
                 position + plane * (o.channel + channels * o.pixel[0]));
  }
}

}  // namespace

SPARKLE_KERNEL(sparkle_pool_1, WindowRecord, kWindowThreads, 8) { pool_window<1>(record); }
SPARKLE_KERNEL(sparkle_pool_4, WindowRecord, kWindowThreads, 8) { pool_window<4>(record); }
