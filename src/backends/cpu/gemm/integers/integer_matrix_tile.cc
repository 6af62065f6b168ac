#include "backends/cpu/gemm/integers/integer_matrix.h"

#include "backends/cpu/simd/dot_units.h"

#if SPARKLE_X86
namespace sparkle::cpu {

// Every CPU with AMX has AVX-512 VNNI beside it (device/cpu_units.cc holds the unit to that).
SPARKLE_X86_BEGIN(SPARKLE_FEATURES_AVX512_VNNI)
namespace amx_int8 {
#define SPARKLE_UNIT Avx512Vnni
#define SPARKLE_MACHINE AmxTiles
#include "backends/cpu/gemm/integers/integer_matrix_tile-inl.h"
#undef SPARKLE_UNIT
#undef SPARKLE_MACHINE
}  // namespace amx_int8
SPARKLE_X86_END

const IntegerMatrixKernels* integer_matrix_kernels_of(std::string_view unit) {
  if (unit != "amx-int8") return nullptr;
  static const IntegerMatrixKernels kernels = amx_int8::make_matrix_kernels();
  return &kernels;
}

}  // namespace sparkle::cpu
#else
namespace sparkle::cpu {
const IntegerMatrixKernels* integer_matrix_kernels_of(std::string_view) { return nullptr; }
}  // namespace sparkle::cpu
#endif
