// Between real numbers and integers (or floats of 8 and 4 bits), sums of quantised tensors, factors of integer sums, means of
// channels, and the range of a tensor: families/quantize/quantize.h.
#include "backends/cuda/kernels/gemm_index.cuh"
#include "backends/cuda/kernels/integers/integers.cuh"
#include "backends/cuda/kernels/integers/quantize_record.h"
#include "families/values/narrow.h"

using namespace sparkle;
using namespace sparkle::cuda;

namespace {

enum Kind : uint8_t { kQuantize, kDequantize, kDynamic, kAdd, kAverage, kFactor };  // of QuantizeKind

// In the precision of the scale.
SPARKLE_DEVICE float quotient_in(DType real, float x, float scale) {
  const float q = exact_quotient(x, scale);
  return real == DType::f16 ? float_of_half(half_of(q)) : real == DType::bf16 ? float_of_bfloat(bfloat_of(q)) : q;
}

struct OneElement {
  const QuantizeRecord& r;
  int64_t scale_at, zero_at;
  SPARKLE_DEVICE float scale() const { return loaded<float>(static_cast<DType>(r.real), r.scale, scale_at); }
  SPARKLE_DEVICE int32_t zero() const { return integer_at(static_cast<DType>(r.zero_type), r.zero, zero_at); }

  SPARKLE_DEVICE int32_t quantize(float x) const {
    return quantized(quotient_in(static_cast<DType>(r.real), x, scale()), zero(), r.low, r.high);
  }
  SPARKLE_DEVICE float dequantize(int32_t x) const { return exact_product(static_cast<float>(int64_t{x} - zero()), scale()); }
  SPARKLE_DEVICE int32_t add(int32_t a, int32_t b) const {
    const float left = exact_product(static_cast<float>(a - zero()), scale());
    const int32_t b_zero = integer_at(static_cast<DType>(r.b_type), r.b_zero, 0);
    const float right = exact_product(static_cast<float>(b - b_zero), load_global(static_cast<const float*>(r.b_scale)));
    return quantized(exact_quotient(exact_sum(left, right), load_global(static_cast<const float*>(r.y_scale))),
                     integer_at(static_cast<DType>(r.y_type), r.y_zero, 0), r.low, r.high);
  }
};

SPARKLE_DEVICE double narrow_at(DType type, const void* from, int64_t at) {
  return narrow::decode(type, load_global(static_cast<const uint8_t*>(from) + at));
}

template <int kWidth>
SPARKLE_DEVICE void quantize_elements(const QuantizeRecord& record) {
  uint32_t index = block_x() * kQuantizeThreads + thread_id();
  if (index >= record.count) return;
  int64_t at[kQuantizeOperands] = {};
  for (int i = record.rank - 1; i >= 0; --i) {
    const auto place = static_cast<int32_t>(fast_divmod(index, record.size[i]));
    SPARKLE_UNROLL
    for (int o = 0; o < kQuantizeOperands; ++o) at[o] += int64_t{place} * record.strides[o][i];
  }
  const auto real = static_cast<DType>(record.real), x_type = static_cast<DType>(record.x_type),
             y_type = static_cast<DType>(record.y_type);
  if constexpr (kWidth == 4) {
    int32_t x[4] = {}, v[4] = {};
    if (record.kind != kQuantize) {
      const uint32_t word =
          load_global(reinterpret_cast<const uint32_t*>(static_cast<const uint8_t*>(record.x) + at[kQuantizeX]));
      SPARKLE_UNROLL
      for (int i = 0; i < 4; ++i) x[i] = byte_of(x_type, word, i);
    }
    uint32_t b = 0;
    if (record.kind == kAdd)
      b = load_global(reinterpret_cast<const uint32_t*>(static_cast<const uint8_t*>(record.b) + at[kQuantizeB]));
    SPARKLE_UNROLL
    for (int i = 0; i < 4; ++i) {
      const OneElement e{record, at[kQuantizeScale] + i * record.beside[0], at[kQuantizeZero] + i * record.beside[1]};
      if (record.kind == kQuantize) v[i] = e.quantize(loaded<float>(real, record.x, at[kQuantizeX] + i));
      else if (record.kind == kDequantize) stored(y_type, record.y, at[kQuantizeY] + i, e.dequantize(x[i]));
      else v[i] = e.add(x[i], byte_of(static_cast<DType>(record.b_type), b, i));
    }
    if (record.kind != kDequantize)
      store_global(reinterpret_cast<uint32_t*>(static_cast<uint8_t*>(record.y) + at[kQuantizeY]), word_of(v));
    return;
  }
  const OneElement e{record, at[kQuantizeScale], at[kQuantizeZero]};
  const int64_t x = at[kQuantizeX], y = at[kQuantizeY];
  switch (record.kind) {
    case kFactor: {
      const float product = exact_product(loaded<float>(real, record.x, x), e.scale());
      return stored(y_type, record.y, y, exact_quotient(product, loaded<float>(real, record.b, at[kQuantizeB])));
    }
    case kAdd:
      return put_integer(
          y_type, record.y, y,
          e.add(integer_at(x_type, record.x, x), integer_at(static_cast<DType>(record.b_type), record.b, at[kQuantizeB])));
    case kDequantize:
      if (is_narrow_float(x_type)) {
        const auto difference = static_cast<float>(narrow_at(x_type, record.x, x) - narrow_at(x_type, record.zero, e.zero_at));
        return stored(y_type, record.y, y, exact_product(difference, e.scale()));
      }
      return stored(y_type, record.y, y, e.dequantize(integer_at(x_type, record.x, x)));
    default:
      if (is_narrow_float(y_type)) {
        double v = quotient_in(real, loaded<float>(real, record.x, x), e.scale()) + narrow_at(y_type, record.zero, e.zero_at);
        if (v < record.low) v = record.low;
        if (v > record.high) v = record.high;
        return store_global(static_cast<uint8_t*>(record.y) + y, narrow::encode(narrow::format_of(y_type), v));
      }
      return put_integer(y_type, record.y, y, e.quantize(loaded<float>(real, record.x, x)));
  }
}

struct Range {
  float low = 0, high = 0;
  SPARKLE_DEVICE void take(float l, float h) {  // NaN is passed over
    if (l < low) low = l;
    if (h > high) high = h;
  }
};
// That of all threads, in the first.
SPARKLE_DEVICE void join_ranges(Range& range) {
  const SharedAddress own = shared_base() + 8 * thread_id();
  store_shared_8(own, bits_of(range.low), bits_of(range.high));
  for (uint32_t step = kRangeThreads / 2; step > 0; step /= 2) {
    sync_block();
    if (thread_id() >= step) continue;
    range.take(float_of(load_shared_4(own + 8 * step)), float_of(load_shared_4(own + 8 * step + 4)));
    store_shared_8(own, bits_of(range.low), bits_of(range.high));
  }
}

}  // namespace

SPARKLE_KERNEL(sparkle_quantize_1, QuantizeRecord, kQuantizeThreads, 8) { quantize_elements<1>(record); }
SPARKLE_KERNEL(sparkle_quantize_4, QuantizeRecord, kQuantizeThreads, 8) { quantize_elements<4>(record); }

SPARKLE_KERNEL(sparkle_quantize_average, AverageRecord, kAverageChannels* kAverageSlices, 4) {
  const auto lane = static_cast<int32_t>(thread_id() % kAverageChannels),
             slice = static_cast<int32_t>(thread_id() / kAverageChannels),
             c = static_cast<int32_t>(block_x()) * kAverageChannels + lane;
  const auto x_type = static_cast<DType>(record.x_type), y_type = static_cast<DType>(record.y_type);
  int32_t sum = 0;
  if (c < record.channels) {
    const int64_t image = int64_t{block_y()} * record.x_strides[0] + int64_t{c} * record.x_channel;
    for (int32_t p = slice; p < record.pixels; p += kAverageSlices) {
      auto left = static_cast<uint32_t>(p);
      const auto w = static_cast<int32_t>(fast_divmod(left, record.w)), h = static_cast<int32_t>(fast_divmod(left, record.h));
      sum += integer_at(
          x_type, record.x,
          image + int64_t{w} * record.x_strides[3] + int64_t{h} * record.x_strides[2] + int64_t{left} * record.x_strides[1]);
    }
  }
  const SharedAddress own = shared_base() + 4 * thread_id();
  store_shared_4(own, static_cast<uint32_t>(sum));
  sync_block();
  if (slice > 0 || c >= record.channels) return;
  sum = -record.pixels * integer_at(x_type, record.zero, 0);
  for (int i = 0; i < kAverageSlices; ++i) sum += static_cast<int32_t>(load_shared_4(own + 4 * kAverageChannels * i));
  const float divisor = exact_product(static_cast<float>(record.pixels), load_global(record.y_scale));
  put_integer(y_type, record.y, int64_t{block_y()} * record.y_image + int64_t{c} * record.y_channel,
              requantized(sum, exact_quotient(load_global(record.scale), divisor), integer_at(y_type, record.y_zero, 0),
                          record.low, record.high));
}

SPARKLE_KERNEL(sparkle_quantize_range, RangeRecord, kRangeThreads, 2) {
  Range range;
  for (uint32_t i = block_x() * kRangeThreads + thread_id(); i < record.count; i += grid_x() * kRangeThreads) {
    uint32_t index = i;
    int64_t at = 0;
    for (int axis = record.rank - 1; axis >= 0; --axis)
      at += int64_t{fast_divmod(index, record.size[axis])} * record.strides[axis];
    const float x = load_global(record.x + at);
    range.take(x, x);
  }
  join_ranges(range);
  if (thread_id() > 0) return;
  store_global(record.pairs + 2 * block_x(), range.low);
  store_global(record.pairs + 2 * block_x() + 1, range.high);
}

SPARKLE_KERNEL(sparkle_quantize_range_end, RangeRecord, kRangeThreads, 2) {
  Range range;
  const auto pair = static_cast<int32_t>(thread_id());
  if (pair < record.blocks) range.take(load_global(record.pairs + 2 * pair), load_global(record.pairs + 2 * pair + 1));
  join_ranges(range);
  if (pair > 0) return;
  const float scale = exact_quotient(exact_sum(range.high, -range.low), 255.0f);
  const bool real = scale > 0.0f;  // nothing but zeros: any scale is right
  const float zero = real ? exact_quotient(-range.low, scale) : 0.0f;
  store_global(record.scale, real ? scale : 1.0f);
  store_global(record.zero, static_cast<uint8_t>(to_nearest(zero < 0.0f ? 0.0f : zero > 255.0f ? 255.0f : zero)));
}
