// Whole numbers rounded up, none of them negative.
#pragma once

#include <cstdint>

namespace sparkle {

// a / b, rounded up.
constexpr int64_t divided(int64_t a, int64_t b) { return (a + b - 1) / b; }
// The least multiple of b that is not below a.
constexpr int64_t rounded_up(int64_t a, int64_t b) { return divided(a, b) * b; }

}  // namespace sparkle
