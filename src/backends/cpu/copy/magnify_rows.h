// Rows in which each run of bytes is stored several times in a row, and each row several times: nearest resize by whole scales.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sparkle::cpu {

// Rows of n runs of `bytes` bytes, `px` bytes apart. Row i becomes rows i * copies ... + copies - 1 of y, `py` bytes apart,
// each of n * times runs. A run is an element of 1, 2, 4 or 8 bytes or longer.
struct MagnifyArguments {
  const std::byte* x;
  std::byte* y;
  int64_t rows, px, py, copies;
  int64_t n, times, bytes;
};
using MagnifyFunction = void (*)(const MagnifyArguments&);

inline constexpr int64_t kMostTimes = 4;  // of an element; runs may be repeated as often as one likes
// nullptr: no such unit.
MagnifyFunction magnify_rows(std::string_view unit);

}  // namespace sparkle::cpu
