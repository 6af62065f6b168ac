// The peak of integer dot products, unit by unit: what the gemm and depthwise kernels on 8-bit integers are measured against.
#include "backends/cpu/simd/dot_units.h"
#include "backends/cpu/simd/dot_units_arm.h"
#include "backends/cpu/roofs/roof_kernels.h"

#if SPARKLE_X86
namespace sparkle::cpu {

// What may not be computed once for all sums goes through renew(): an operand that the compiler takes for changed. An
// instruction that adds its products to the sum by itself needs none.
SPARKLE_X86_BEGIN(SPARKLE_FEATURES_AVX512_VNNI)
namespace avx512_vnni {
struct Unit : Avx512Vnni {
  static constexpr int kProducts = 1;
  static inline void renew(Left&) {}
};
#define SPARKLE_UNIT Unit
#include "backends/cpu/roofs/roof_dots-inl.h"
#undef SPARKLE_UNIT
}  // namespace avx512_vnni
SPARKLE_X86_END

SPARKLE_X86_BEGIN(SPARKLE_FEATURES_AVX_VNNI)
namespace avx_vnni {
struct Unit : AvxVnni {
  static constexpr int kProducts = 1;
  static inline void renew(Left&) {}
};
#define SPARKLE_UNIT Unit
#include "backends/cpu/roofs/roof_dots-inl.h"
#undef SPARKLE_UNIT
}  // namespace avx_vnni
SPARKLE_X86_END

SPARKLE_X86_BEGIN(SPARKLE_FEATURES_AVX2)
namespace avx2 {
struct Unit : Avx2 {
  using Left = V;
  using Right = V;
  static constexpr int kProducts = 2;  // instructions per dot product of four bytes
  static inline void renew(Left& a) { asm volatile("" : "+x"(a)); }
  static inline Left left(const uint8_t* p) {
    const int16_t two[] = {p[0], p[1]};
    return Avx2::left(two);
  }
  static inline V dot(V sum, Left a, Right b) {
    const V first = Avx2::dot(sum, a, b);
    renew(a);
    return Avx2::dot(first, a, b);
  }
};
#define SPARKLE_UNIT Unit
#include "backends/cpu/roofs/roof_dots-inl.h"
#undef SPARKLE_UNIT
}  // namespace avx2
SPARKLE_X86_END

double (*integer_products(std::string_view unit))(double flops, float* sink) {
  if (unit == "avx512-vnni") return avx512_vnni::dot_loop;
  if (unit == "avx-vnni") return avx_vnni::dot_loop;
  if (unit == "avx2-int16") return avx2::dot_loop;
  return nullptr;
}

}  // namespace sparkle::cpu
#elif defined(__aarch64__)
namespace sparkle::cpu {

SPARKLE_ARM_DOT_BEGIN
namespace neon_dot {
struct Unit : NeonDot {
  static constexpr int kProducts = 1;
  static inline void renew(Left&) {}
};
#define SPARKLE_UNIT Unit
#include "backends/cpu/roofs/roof_dots-inl.h"
#undef SPARKLE_UNIT
}  // namespace neon_dot
SPARKLE_ARM_DOT_END

double (*integer_products(std::string_view unit))(double flops, float* sink) {
  return unit == "neon-dot" ? neon_dot::dot_loop : nullptr;
}

}  // namespace sparkle::cpu
#else
namespace sparkle::cpu {
double (*integer_products(std::string_view))(double flops, float* sink) { return nullptr; }
}  // namespace sparkle::cpu
#endif
