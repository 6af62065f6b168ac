// The unit of gemm schedules that compute one number at a time. No plan has it: benches show by it what vectors bring.
// Schedules in kept results have its name.
#pragma once

#include <string_view>

namespace sparkle {

inline constexpr std::string_view kScalarUnit = "scalar";

}  // namespace sparkle
