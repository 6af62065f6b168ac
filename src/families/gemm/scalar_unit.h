// The unit of gemm schedules that compute one number at a time. No plan has it: benches show by it what vectors bring.
// Results in bench/results that were kept before have its older name, `one_lane`.
#pragma once

#include <string_view>

namespace sparkle {

inline constexpr std::string_view kScalarUnit = "scalar";

}  // namespace sparkle
