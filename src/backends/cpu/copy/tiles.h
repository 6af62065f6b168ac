// Transpositions in registers: y[a * ya + b * element] = x[a * element + b * xb], strides in bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sparkle::cpu {

struct TileArguments {
  const std::byte* x;
  std::byte* y;
  int64_t na, nb;  // a is contiguous in x, b is contiguous in y
  int64_t xb, ya;
  bool stream;  // stores bypass the caches where y's alignment allows it; the caller fences
};
using TileFunction = void (*)(const TileArguments&);

// Any na and nb, elements of 1, 2, 4 or 8 bytes; nullptr: no such unit or element.
TileFunction transpose_tiles(std::string_view unit, int64_t element);
// nb of 2, 3 or 4 with ya = nb * element: planes become elements side by side (NCHW to NHWC with few channels).
TileFunction interleave(std::string_view unit, int64_t element, int64_t nb);
// na of 2, 3 or 4 with xb = na * element: the way back.
TileFunction deinterleave(std::string_view unit, int64_t element, int64_t na);

}  // namespace sparkle::cpu
