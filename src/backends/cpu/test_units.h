// For tests: the vector units of this machine that kernels are built for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/system/sanitized.h"

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace sparkle::cpu {

inline std::vector<std::string> test_units() {
  std::vector<std::string> units;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw"))
    units.push_back("avx512");
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) units.push_back("avx2");
#elif defined(__aarch64__)
  units.push_back("neon");
#if defined(__linux__)
  if ((getauxval(AT_HWCAP) >> 22 & 1) != 0) units.push_back("sve");  // bit 22 of the kernel's hwcap.h
#endif
#endif
  return units;
}

// How many of `count` random cases the unit gets: all, but a quarter where a sanitizer or an emulator looks at each
// instruction, and a tenth for SVE in a cross build, whose emulator takes a function call for each of its instructions.
inline int cases_on([[maybe_unused]] std::string_view unit, int count) {
#if defined(SPARKLE_TESTS_EMULATED)
  return unit == "sve" ? (count + 9) / 10 : (count + 3) / 4;
#else
  return kSanitized ? (count + 3) / 4 : count;
#endif
}

}  // namespace sparkle::cpu
