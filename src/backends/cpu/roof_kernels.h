// The loops that find the roofs of a CPU: independent FMAs in registers, reading and copying memory.
#pragma once

#include <cstdint>
#include <string_view>

namespace sparkle::cpu {

struct RoofKernels {
  // Runs at least `flops` and returns how many; `sink` takes one float so that nothing is optimised away.
  double (*fma)(double flops, float* sink) = nullptr;
  // Reads `count` floats `times` over; returns a checksum. Pointers are 64-byte aligned, counts are multiples of kRoofStep.
  uint32_t (*read)(const float* from, int64_t count, int64_t times) = nullptr;
  void (*copy)(const float* from, float* to, int64_t count, int64_t times) = nullptr;
};
inline constexpr int64_t kRoofStep = 1024;  // eight of the longest vectors there are (SVE, 2048 bits), twice

// Kernels for a vector unit ("avx512"); null pointers when there are none.
RoofKernels roof_kernels(std::string_view unit);

}  // namespace sparkle::cpu
