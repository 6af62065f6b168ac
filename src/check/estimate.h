// What a sum of products would take on a device in a precision: by the planner's own choice where this build has kernels for
// the device, else by its roofs alone. The same function says what a layer costs now and what it would cost once it is fixed.
#pragma once

#include <optional>
#include <string>

#include "algorithms/problem.h"
#include "device/units/unit_sizes.h"
#include "plan/plan.h"

namespace sparkle {

struct Estimate {
  Cost cost;
  std::string unit;       // of the device; empty: unknown
  std::string algorithm;  // and the kernel's variant; of roofs: empty
  std::string variant;
  bool kernel = false;  // this build has one
  double bytes = 0;     // beyond the innermost caches: of operands, each once
};

// The precision that a problem's operands are in; nothing for doubles.
std::optional<Precision> precision_of(const Problem& problem);

// The problem on operands of a precision. Nothing where the device computes it in another one: no unit multiplies it.
std::optional<Estimate> estimate(const Problem& problem, Precision precision, const Device& device);

// By the roofs alone. A matrix unit that is fed by runs shorter than it takes waits for them: loads are counted for a tile of
// 128 x 128 sums (docs/decisions/0035).
Estimate estimate_by_roofs(const Problem& problem, Precision precision, const Device& device);

// Attention of `heads` (batches counted in) over so many queries and keys, by the roofs.
struct AttentionSizes {
  int64_t heads = 1, queries = 1, keys = 1, head = 1, value = 1;
  double flops() const;
};
Estimate estimate_by_roofs(const AttentionSizes& sizes, Precision precision, const Device& device);

// A copy of so many bytes, read and written counted together, in a step of its own.
double estimate_copy(double bytes, const Device& device);

// Whether a change brings something: less time. Where kernels of this build say the time, changes below this share are noise.
inline constexpr double kLeastGain = 0.02;
bool pays(double now_seconds, double then_seconds, const Device& device);

// The rows, columns and depth of the problem seen as so many equal products.
struct ProductSizes {
  int64_t products = 1, rows = 1, columns = 1, depth = 1;
  int64_t runs_in = 1, runs_out = 1;  // elements that lie side by side in operands and result
};
ProductSizes product_sizes(const Problem& problem);

// Tiles of 64 x 64 sums that can be computed at the same time.
int64_t tiles_of(const Problem& problem);

}  // namespace sparkle
