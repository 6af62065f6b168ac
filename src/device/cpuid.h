// cpuid as a function that returns zeros for leaves the CPU does not have. x86 only.
#pragma once

#if defined(__x86_64__)
#include <cpuid.h>

#include <cstdint>

namespace sparkle {

struct CpuidLeaf {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

inline CpuidLeaf cpuid(uint32_t leaf, uint32_t subleaf = 0) {
  CpuidLeaf r;
  if (__get_cpuid_max(leaf & 0x80000000u, nullptr) >= leaf) __cpuid_count(leaf, subleaf, r.eax, r.ebx, r.ecx, r.edx);
  return r;
}

}  // namespace sparkle
#endif
