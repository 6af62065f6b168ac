// What a sum of products would take on a device in a precision, by the planner's own choice of a kernel. The same function says
// what a layer costs now and what it would cost once it is fixed.
#pragma once

#include <optional>
#include <string>

#include "algorithms/problem.h"
#include "device/units/unit_sizes.h"
#include "plan/plan.h"

namespace sparkle {

struct Estimate {
  Cost cost;
  std::string unit;  // of the device; empty: unknown
  std::string algorithm, variant;
  double bytes = 0;  // beyond the innermost caches: of operands, each once
};

// The precision that a problem's operands are in; nothing for doubles.
std::optional<Precision> precision_of(const Problem& problem);

// The problem on operands of a precision. Nothing where no unit of the device multiplies it, or no kernel computes it there.
std::optional<Estimate> estimate(const Problem& problem, Precision precision, const Device& device);

// A copy of so many bytes, read and written counted together, in a step of its own.
double estimate_copy(double bytes, const Device& device);

// Whether a change brings something: less time. Changes below this share are noise.
inline constexpr double kLeastGain = 0.02;
bool pays(double now_seconds, double then_seconds);

// The rows, columns and depth of the problem seen as so many equal products.
struct ProductSizes {
  int64_t products = 1, rows = 1, columns = 1, depth = 1;
};
ProductSizes product_sizes(const Problem& problem);

// Tiles of 64 x 64 sums that can be computed at the same time.
int64_t tiles_of(const Problem& problem);

}  // namespace sparkle
