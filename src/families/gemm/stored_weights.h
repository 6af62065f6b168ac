// Weights that a gemm kernel keeps in 16 bits and widens as it reads them: which variants do, and what such a type would make
// of given weights. Sums and activations stay in f32.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/dtype.h"

namespace sparkle {

// The type in which a variant of the gemm family keeps its packed weights: f32, f16 or bf16.
DType stored_weights(std::string_view variant);

// What a type of 16 bits makes of a tensor: every value as it is, rounded values, or values that it cannot hold.
enum class Fit : uint8_t { never, rounded, exact };
std::string_view name_of(Fit fit);
bool parse_name(std::string_view text, Fit& fit);

struct WeightFit {
  Fit f16 = Fit::never, bf16 = Fit::never;
  friend bool operator==(const WeightFit&, const WeightFit&) = default;
};
// `ranges`: whether those that are not exact are held against the types' ranges too, which takes a look at every value; else
// they count as rounded.
WeightFit weight_fit(const float* weights, int64_t count, bool ranges);

}  // namespace sparkle
