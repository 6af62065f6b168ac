// ArgMax and ArgMin of columns of floats that lie side by side.
#pragma once

#include <cstdint>
#include <string_view>

namespace sparkle::cpu {

// Columns of n floats, `stride` from row to row; the order of families/top_k/top_k.h.
struct ArgColumns {
  const float* x;
  int64_t n, stride, columns;
  bool largest, last, nan_first;
  int64_t* indices;
};
// At least as many columns as least_columns says, and fewer than 2^31 rows.
struct ArgFunctions {
  void (*columns)(const ArgColumns&);
  int64_t (*least_columns)();
};
// columns is nullptr where there is no such unit.
ArgFunctions arg_functions(std::string_view unit);

}  // namespace sparkle::cpu
