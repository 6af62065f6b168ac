#include "families/gemm/stored_weights.h"

#include <algorithm>
#include <bit>

namespace sparkle {
namespace {

constexpr std::string_view kFits[] = {"never", "rounded", "exact"};
constexpr uint32_t kMagnitude = 0x7fffffff, kInfinity = 0x7f800000;
// f16: normal numbers from 2^-14 to 65504, below them multiples of 2^-24. bf16: the upper half of a float.
constexpr uint32_t kLeastNormal = 0x38800000, kBeyondNormal = 0x47800000, kLargestF16 = 0x477fe000, kLargestBf16 = 0x7f7f0000;
constexpr int64_t kBlock = 1024;

bool is_normal_f16(uint32_t size) {
  return size == 0 || ((size & 0x1fff) == 0 && size - kLeastNormal < kBeyondNormal - kLeastNormal);
}
bool is_f16(uint32_t size) {
  if (is_normal_f16(size)) return true;
  const uint32_t exponent = size >> 23;
  return exponent >= 103 && exponent < 113 && (size & ((1u << (126 - exponent)) - 1)) == 0;
}

// Blocks without early ends, so that a compiler makes vectors of them.
bool all_f16(const float* weights, int64_t count) {
  uint32_t others = 0;
  for (int64_t i = 0; i < count; ++i) others |= is_normal_f16(std::bit_cast<uint32_t>(weights[i]) & kMagnitude) ? 0u : 1u;
  return others == 0 ||
         std::all_of(weights, weights + count, [](float w) { return is_f16(std::bit_cast<uint32_t>(w) & kMagnitude); });
}
bool all_bf16(const float* weights, int64_t count) {
  uint32_t lower = 0, largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<uint32_t>(weights[i]);
    lower |= bits & 0xffff;
    largest = std::max(largest, bits & kMagnitude);
  }
  return lower == 0 && largest < kInfinity;
}

bool all_blocks(bool (*test)(const float*, int64_t), const float* weights, int64_t count) {
  for (int64_t i = 0; i < count; i += kBlock)
    if (!test(weights + i, std::min(kBlock, count - i))) return false;
  return true;
}

// Numbers below 2^-14 have steps of 2^-24 in f16 whatever their size. That errs less than rounding does elsewhere as long as
// most weights are larger: their root mean square, to which outputs are in proportion, is 2^-14 or more.
WeightFit judge_ranges(const float* weights, int64_t count) {
  uint32_t largest = 0;
  double squares = 0;
  for (int64_t i = 0; i < count; i += kBlock) {
    constexpr int kLanes = 16;
    float sums[kLanes] = {};
    const int64_t end = std::min(count, i + kBlock), whole = i + (end - i) / kLanes * kLanes;
    for (int64_t j = i; j < whole; j += kLanes)
      for (int lane = 0; lane < kLanes; ++lane) sums[lane] += weights[j + lane] * weights[j + lane];
    for (int64_t j = whole; j < end; ++j) sums[0] += weights[j] * weights[j];
    for (int64_t j = i; j < end; ++j) largest = std::max(largest, std::bit_cast<uint32_t>(weights[j]) & kMagnitude);
    for (const float sum : sums) squares += static_cast<double>(sum);
  }
  const bool large_enough = squares >= 0x1p-28 * static_cast<double>(count);
  return {largest <= kLargestF16 && large_enough ? Fit::rounded : Fit::never,
          largest <= kLargestBf16 ? Fit::rounded : Fit::never};
}

}  // namespace

DType stored_weights(std::string_view variant) {
  if (variant.starts_with("half")) return DType::f16;
  return variant.starts_with("bfloat") ? DType::bf16 : DType::f32;
}

std::string_view name_of(Fit fit) { return kFits[static_cast<size_t>(fit)]; }
bool parse_name(std::string_view text, Fit& fit) {
  for (const Fit f : {Fit::never, Fit::rounded, Fit::exact})
    if (name_of(f) == text) return fit = f, true;
  return false;
}

WeightFit weight_fit(const float* weights, int64_t count, bool ranges) {
  WeightFit fit{all_blocks(all_f16, weights, count) ? Fit::exact : Fit::rounded,
                all_blocks(all_bf16, weights, count) ? Fit::exact : Fit::rounded};
  if (!ranges || (fit.f16 == Fit::exact && fit.bf16 == Fit::exact)) return fit;
  const WeightFit range = judge_ranges(weights, count);
  if (fit.f16 != Fit::exact) fit.f16 = range.f16;
  if (fit.bf16 != Fit::exact) fit.bf16 = range.bf16;
  return fit;
}

}  // namespace sparkle
