// The ritual of Highway in one include: a kernel file compiles its body once per CPU target and picks one by the name of the
// math unit in the Schedule. No include guard: the file is included again for each target. A kernel file looks like this:
//
//   #undef HWY_TARGET_INCLUDE
//   #define HWY_TARGET_INCLUDE "backends/cpu/softmax.cc"   // this very file
//   #include "backends/cpu/simd/simd.h"
//   HWY_BEFORE_NAMESPACE();
//   namespace sparkle::cpu::HWY_NAMESPACE {
//   #if SPARKLE_SIMD          // not for the scalar baseline that Highway always compiles
//   namespace hn = hwy::HWY_NAMESPACE;
//   void softmax_rows(const SoftmaxArguments& a) { ... }
//   #endif
//   }
//   HWY_AFTER_NAMESPACE();
//   #if HWY_ONCE                 // nullptr below: there is no such unit
//   namespace sparkle::cpu { ... const auto function = SPARKLE_PICK(softmax_rows, schedule.unit); ... }
//   #endif
// Units: "avx2", "avx512", "neon", "sve". Macro names of a kernel file must be #undef'd before they are defined again.
#ifdef HWY_TARGET_INCLUDE
#ifndef SPARKLE_LEFT_OUT  // a unit of x86 that a build goes without (SPARKLE_UNITS of CMake)
#define SPARKLE_LEFT_OUT HWY_SVE2_128
#endif
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_SVE2 | HWY_SVE_256 | SPARKLE_LEFT_OUT)
#include <hwy/foreach_target.h>
// must come after foreach_target.h
#include <hwy/highway.h>
#endif

#undef SPARKLE_SIMD
#define SPARKLE_SIMD (HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128)
// Vector registers that a kernel can name on this target.
#undef SPARKLE_REGISTERS
#if HWY_TARGET == HWY_AVX2
#define SPARKLE_REGISTERS 16
#else
#define SPARKLE_REGISTERS 32
#endif

#ifndef SPARKLE_SIMD_H_ONCE
#define SPARKLE_SIMD_H_ONCE
#include <initializer_list>
#include <string_view>

namespace sparkle::cpu {
template <class F>
struct TargetEntry {
  std::string_view unit;
  F function;
};
template <class F>
TargetEntry(const char*, F) -> TargetEntry<F>;
template <class F>
F pick_target(std::string_view unit, std::initializer_list<TargetEntry<F>> entries) {
  for (const auto& entry : entries)
    if (entry.unit == unit) return entry.function;
  return nullptr;
}
}  // namespace sparkle::cpu

#if HWY_TARGETS & HWY_AVX2
#define SPARKLE_ENTRY_AVX2(f) ::sparkle::cpu::TargetEntry{"avx2", &N_AVX2::f},
#else
#define SPARKLE_ENTRY_AVX2(f)
#endif
#if HWY_TARGETS & HWY_AVX3
#define SPARKLE_ENTRY_AVX3(f) ::sparkle::cpu::TargetEntry{"avx512", &N_AVX3::f},
#else
#define SPARKLE_ENTRY_AVX3(f)
#endif
#if HWY_TARGETS & HWY_NEON
#define SPARKLE_ENTRY_NEON(f) ::sparkle::cpu::TargetEntry{"neon", &N_NEON::f},
#else
#define SPARKLE_ENTRY_NEON(f)
#endif
#if HWY_TARGETS & HWY_SVE
#define SPARKLE_ENTRY_SVE(f) ::sparkle::cpu::TargetEntry{"sve", &N_SVE::f},
#else
#define SPARKLE_ENTRY_SVE(f)
#endif
// The function `f` compiled for the unit, or nullptr. Use inside namespace sparkle::cpu.
#define SPARKLE_PICK(f, unit)  \
  ::sparkle::cpu::pick_target( \
      unit, std::initializer_list{SPARKLE_ENTRY_AVX3(f) SPARKLE_ENTRY_AVX2(f) SPARKLE_ENTRY_SVE(f) SPARKLE_ENTRY_NEON(f)})
#endif
