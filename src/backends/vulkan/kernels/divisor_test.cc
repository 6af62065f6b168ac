// Divisors give the quotient for every dividend below 2^31, as glsl/divide.glsl computes it.
#include "backends/vulkan/kernels/divisor.h"

#include <gtest/gtest.h>

#include <random>

namespace sparkle::vulkan {
namespace {

uint32_t divided(uint32_t n, const Divisor& d) {
  return d.size == 1 ? n : static_cast<uint32_t>(uint64_t{n} * d.factor >> 32) >> d.shift;
}

TEST(VulkanDivisor, IsExactBelow31Bits) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto check = [](uint32_t n, uint32_t size) { ASSERT_EQ(divided(n, divisor(size)), n / size) << n << " / " << size; };
  constexpr uint32_t kLast = 0x7fffffff;
  for (uint32_t size = 1; size < 3000 && !HasFatalFailure(); ++size)
    for (const uint32_t n : {0u, size - 1, size, kLast / size * size, kLast / size * size - 1, kLast}) check(n, size);
  for (int bit = 1; bit < 31 && !HasFatalFailure(); ++bit)
    for (const uint32_t size : {(1u << bit) - 1, 1u << bit, (1u << bit) + 1})
      for (const uint32_t n : {size - 1, size, kLast / size * size - 1, kLast / size * size, kLast}) check(n, size);
  for (int i = 0; i < 200000 && !HasFatalFailure(); ++i) {
    const uint32_t size = (1 + static_cast<uint32_t>(random() % kLast)) >> (random() % 31),
                   n = static_cast<uint32_t>(random() & kLast);
    check(n, std::max(size, 1u));
  }
}

}  // namespace
}  // namespace sparkle::vulkan
