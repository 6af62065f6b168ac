// Sums of products of 8-bit integers in 32 bits, and filters laid out for the kernels on Tensor Cores.
#include "backends/cuda/kernels/integers/filters_record.h"
#include "backends/cuda/kernels/integers/integers.cuh"
#include "backends/cuda/kernels/integers/sums_record.h"
#include "backends/cuda/kernels/windows/window.cuh"

using namespace sparkle::cuda;

namespace {

SPARKLE_DEVICE int32_t x_zero_of(const SumsEnd& end) { return integer_at(static_cast<DType>(end.x_type), end.x_zero, 0); }
SPARKLE_DEVICE int32_t w_zero_of(const SumsEnd& end, int32_t filter) {
  return integer_at(static_cast<DType>(end.w_type), end.w_zero, int64_t{filter} * end.w_zero_stride);
}
// `filter`: counted over all instances.
SPARKLE_DEVICE int32_t finished(const SumsEnd& end, int32_t sum, int32_t filter) {
  if (end.bias != nullptr)
    sum = static_cast<int32_t>(static_cast<uint32_t>(sum) +
                               static_cast<uint32_t>(load_global(end.bias + int64_t{filter} * end.bias_stride)));
  if (end.scale == nullptr) return sum;
  return requantized(sum, load_global(end.scale + int64_t{filter} * end.scale_stride),
                     integer_at(static_cast<DType>(end.y_type), end.y_zero, 0), end.low, end.high);
}

}  // namespace

SPARKLE_KERNEL(sparkle_integer_sums, SumsRecord, kSumsThreads, 4) {
  uint32_t index = block_x() * kSumsThreads + thread_id();
  if (index >= record.count) return;
  const GemmRecord& g = record.gemm;
  const auto n = static_cast<int32_t>(fast_divmod(index, record.n_by));
  const Instance instance = instance_of(g, fast_divmod(index, record.count_by));
  const Pixel pixel = pixel_of(g, static_cast<int32_t>(index));
  const int32_t filter = dot4(instance.v, g.channel_instance) + n;
  const auto x_type = static_cast<DType>(record.end.x_type), w_type = static_cast<DType>(record.end.w_type);
  const int32_t x_zero = x_zero_of(record.end), w_zero = w_zero_of(record.end, filter);
  const int64_t x0 = int64_t{dot4(instance.v, g.x_instance)} + int64_t{pixel.v[0]} * g.x_strides[0];
  const int64_t w0 = int64_t{dot4(instance.v, g.w_instance)} + int64_t{n} * record.w_strides[0];
  const auto channels = static_cast<int32_t>(g.channels_by.size);
  int32_t sum = 0;
  for (int32_t t = 0; t < g.filter[0]; ++t) {
    const int32_t d = pixel.v[1] * g.stride[0] - g.pad[0] + t * g.dilation[0];
    if (!inside(d, g.x_size[0])) continue;
    for (int32_t r = 0; r < g.filter[1]; ++r) {
      const int32_t h = pixel.v[2] * g.stride[1] - g.pad[1] + r * g.dilation[1];
      if (!inside(h, g.x_size[1])) continue;
      for (int32_t s = 0; s < g.filter[2]; ++s) {
        const int32_t w = pixel.v[3] * g.stride[2] - g.pad[2] + s * g.dilation[2];
        if (!inside(w, g.x_size[2])) continue;
        int64_t from = x0 + int64_t{d} * g.x_strides[1] + int64_t{h} * g.x_strides[2] + int64_t{w} * g.x_strides[3];
        int64_t weight = w0 + int64_t{t} * record.w_strides[1] + int64_t{r} * record.w_strides[2] + int64_t{s} * record.w_strides[3];
        for (int32_t c = 0; c < channels; ++c) {
          sum += (integer_at(x_type, g.x, from) - x_zero) * (integer_at(w_type, g.w, weight) - w_zero);
          from += g.x_channel, weight += record.w_strides[4];
        }
      }
    }
  }
  put_integer(static_cast<DType>(record.end.y_type), g.y,
              int64_t{dot4(instance.v, g.y_instance)} + dot4(pixel.v, g.y_strides) + int64_t{n} * g.y_channel,
              finished(record.end, sum, filter));
}

SPARKLE_KERNEL(sparkle_integer_depthwise, DepthwiseSumsRecord, kSumsThreads, 8) {
  const WindowRecord& window = record.window;
  const uint32_t index = block_x() * kSumsThreads + thread_id();
  if (index >= window.count) return;
  const OutputOfThread o = OutputOfThread::at<4>(window, index);
  const auto x_type = static_cast<DType>(record.end.x_type), w_type = static_cast<DType>(record.end.w_type);
  const int32_t x_zero = x_zero_of(record.end);
  int32_t w_zero[4], sum[4] = {};
  SPARKLE_UNROLL
  for (int i = 0; i < 4; ++i) w_zero[i] = w_zero_of(record.end, o.channel + i);
  o.for_each_tap(window, o.channel, [&](int64_t at, int32_t, int32_t, int32_t, int32_t t, int32_t r, int32_t s) {
    const uint32_t x = load_global(reinterpret_cast<const uint32_t*>(static_cast<const uint8_t*>(window.x) + at));
    const int64_t from = int64_t{o.channel} * window.w_strides[0] + int64_t{t} * window.w_strides[1] +
                         int64_t{r} * window.w_strides[2] + int64_t{s} * window.w_strides[3];
    int32_t w[4];
    if (record.packed) {
      const uint64_t four = load_global(reinterpret_cast<const uint64_t*>(static_cast<const int16_t*>(window.w) + from));
      SPARKLE_UNROLL
      for (int i = 0; i < 4; ++i) w[i] = static_cast<int16_t>(four >> (16 * i));
    } else {
      SPARKLE_UNROLL
      for (int i = 0; i < 4; ++i) w[i] = integer_at(w_type, window.w, from + int64_t{i} * window.w_strides[0]);
    }
    SPARKLE_UNROLL
    for (int i = 0; i < 4; ++i) sum[i] += (byte_of(x_type, x, i) - x_zero) * (w[i] - w_zero[i]);
  });
  const auto y_type = static_cast<DType>(record.end.y_type);
  const int64_t to = o.place(window.y_strides) + o.channel;
  SPARKLE_UNROLL
  for (int i = 0; i < 4; ++i) sum[i] = finished(record.end, sum[i], o.channel + i);
  if (y_type == DType::i32) {
    SPARKLE_UNROLL
    for (int i = 0; i < 4; ++i) store_global(static_cast<int32_t*>(window.y) + to + i, sum[i]);
  } else {
    store_global(reinterpret_cast<uint32_t*>(static_cast<uint8_t*>(window.y) + to), word_of(sum));
  }
}

// A block a row: bytes made signed, zeros behind them, and what they add up to.
SPARKLE_KERNEL(sparkle_integer_filters, FiltersRecord, kFiltersThreads, 4) {
  const auto thread = static_cast<int32_t>(thread_id());
  if (block_x() == 0 && thread < 16 && record.padding != nullptr)
    store_global(record.padding + thread, load_global(static_cast<const uint8_t*>(record.x_zero)));
  if (block_x() >= record.rows) return;
  uint32_t row = block_x();
  int64_t from = int64_t{fast_divmod(row, record.n_by)} * record.filter;
  for (int i = 3; i >= 0; --i) from += int64_t{fast_divmod(row, record.matrices[i])} * record.instance[i];
  uint8_t* to = record.to + int64_t{block_x()} * record.w_stride;
  const auto byte_at = [&](int32_t k) -> uint8_t {
    if (k >= record.k) return 0;
    auto rest = static_cast<uint32_t>(k);
    int64_t at = from;
    for (int i = 3; i >= 0; --i) at += int64_t{fast_divmod(rest, record.size[i])} * record.strides[i];
    return static_cast<uint8_t>(load_global(static_cast<const uint8_t*>(record.from) + at) ^ record.flip);
  };
  // Of the block's threads, in the first.
  const auto total = [&](int32_t sum) {
    const SharedAddress own = shared_base() + 4 * thread_id();
    sync_block();
    store_shared_4(own, static_cast<uint32_t>(sum));
    sync_block();
    for (int i = 1; i < kFiltersThreads && thread == 0; ++i)
      sum += static_cast<int32_t>(load_shared_4(own + 4 * static_cast<uint32_t>(i)));
    return sum;
  };
  int32_t sum = 0;
  for (int32_t k = thread; k < record.w_stride; k += kFiltersThreads) {
    const uint8_t byte = byte_at(k);
    sum += static_cast<int8_t>(byte);
    store_global(to + k, byte);
  }
  int32_t* const sums = record.sums + block_x();
  if (record.taps_h == 0) {
    sum = total(sum);
    if (thread == 0) store_global(sums, sum);
    return;
  }
  // A row of rectangles after the other: the taps of a line so far, and the rectangle above, which this thread wrote.
  const int32_t channels = static_cast<int32_t>(record.size[3].size), line = record.taps_w + 1;
  for (int32_t s = thread; s < line; s += kFiltersThreads) store_global(sums + int64_t{s} * record.rows, 0);
  for (int32_t r = 0; r < record.taps_h; ++r) {
    int32_t of_line = 0;
    if (thread == 0) store_global(sums + int64_t{(r + 1) * line} * record.rows, 0);
    for (int32_t s = 0; s < record.taps_w; ++s) {
      const int32_t first = (r * record.taps_w + s) * channels;
      int32_t of_tap = 0;
      for (int32_t c = thread; c < channels; c += kFiltersThreads) of_tap += static_cast<int8_t>(byte_at(first + c));
      of_line += total(of_tap);
      if (thread > 0) continue;
      const int32_t above = r == 0 ? 0 : load_own(sums + int64_t{r * line + s + 1} * record.rows);
      store_global(sums + int64_t{(r + 1) * line + s + 1} * record.rows, above + of_line);
    }
  }
}
