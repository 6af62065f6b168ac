// The loops that find the roofs of a CPU: independent products in registers, reading and copying memory.
#pragma once

#include <cstdint>
#include <string_view>

namespace sparkle::cpu {

struct RoofKernels {
  // Runs at least `flops` multiplications and additions and returns how many; `sink` takes one value so that nothing is
  // optimised away. Vector units multiply floats, dot-product units bytes, matrix units what they are for.
  double (*products)(double flops, float* sink) = nullptr;
  // Reads `count` floats `times` over; returns a checksum. Pointers are 64-byte aligned, counts are multiples of kRoofStep.
  uint32_t (*read)(const float* from, int64_t count, int64_t times) = nullptr;
  void (*copy)(const float* from, float* to, int64_t count, int64_t times) = nullptr;
};
inline constexpr int64_t kRoofStep = 1024;  // eight of the longest vectors there are (SVE, 2048 bits), twice

// Kernels for a vector unit ("avx512"), `products` alone for a unit of integer dot products ("avx512-vnni") or of tiles
// ("amx-int8"); null pointers where there are none.
RoofKernels roof_kernels(std::string_view unit);
// `products` of a dot-product unit (roof_dots.cc).
double (*integer_products(std::string_view unit))(double flops, float* sink);
// Of a matrix unit (roof_tiles.cc).
double (*tile_products(std::string_view unit))(double flops, float* sink);

}  // namespace sparkle::cpu
