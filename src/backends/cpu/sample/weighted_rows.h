// A weighted sum of rows of channels: what sampling between elements comes down to. One function per math unit.
#pragma once

#include <cstdint>
#include <string_view>

namespace sparkle::cpu {

// y[i] = sum over the taps of weight[t] * x[at[t] + i] for i in [0, count); no taps give zeros.
struct WeightedRows {
  const float* x = nullptr;
  const int64_t* at = nullptr;
  const float* weight = nullptr;
  int taps = 0;
  int64_t count = 0;
  float* y = nullptr;
};
using WeightedRowsFunction = void (*)(const WeightedRows& rows);
// nullptr for a unit without kernels.
WeightedRowsFunction weighted_rows(std::string_view unit);

}  // namespace sparkle::cpu
