// The fp32 multiply-add rate of this thread right now: independent FMAs in registers, enough of them to hide their latency.
// Probed just before and after a measurement, because the clock of a shared machine wanders.
#pragma once

#include <ctime>

namespace sparkle::bench {

inline double thread_seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Flops per second of vectors of 512 (`wide`) or 256 bits; 0 where there is no probe for the machine.
inline double fma_peak([[maybe_unused]] bool wide) {
#if defined(__x86_64__)
  constexpr long kLoops = 25000;
  long count = kLoops;
  const double begin = thread_seconds();
#define SPARKLE_FMAS(r)                                                     \
  ".irp i, 0,1,2,3,4,5,6,7,8,9,10,11\n vxorps %%" r "\\i, %%" r "\\i, %%" r \
  "\\i\n .endr\n"                                                           \
  "1:\n .irp i, 0,1,2,3,4,5,6,7,8,9,10,11\n vfmadd231ps %%" r "\\i, %%" r "\\i, %%" r "\\i\n .endr\n dec %0\n jnz 1b\n"
#define SPARKLE_CLOBBERS "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11"
  if (wide) {
    asm volatile(SPARKLE_FMAS("zmm") : "+r"(count)::SPARKLE_CLOBBERS);
  } else {
    asm volatile(SPARKLE_FMAS("ymm") : "+r"(count)::SPARKLE_CLOBBERS);
  }
#undef SPARKLE_FMAS
#undef SPARKLE_CLOBBERS
  return static_cast<double>(kLoops) * 12 * (wide ? 32 : 16) / (thread_seconds() - begin);
#else
  return 0;
#endif
}

}  // namespace sparkle::bench
