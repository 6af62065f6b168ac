#include "backends/cpu/gemm/integers/integer_tile.h"

#include "backends/cpu/simd/dot_units.h"
#include "backends/cpu/simd/dot_units_arm.h"

#if SPARKLE_X86
namespace sparkle::cpu {

SPARKLE_X86_BEGIN(SPARKLE_FEATURES_AVX512_VNNI)
namespace avx512_vnni {
#define SPARKLE_UNIT Avx512Vnni
#define SPARKLE_PAIRS 0
#define SPARKLE_MOST_ROWS 6
#include "backends/cpu/gemm/integers/integer_tile-inl.h"
#undef SPARKLE_UNIT
#undef SPARKLE_PAIRS
#undef SPARKLE_MOST_ROWS
}  // namespace avx512_vnni
SPARKLE_X86_END

SPARKLE_X86_BEGIN(SPARKLE_FEATURES_AVX_VNNI)
namespace avx_vnni {
#define SPARKLE_UNIT AvxVnni
#define SPARKLE_PAIRS 0
#define SPARKLE_MOST_ROWS 6
#include "backends/cpu/gemm/integers/integer_tile-inl.h"
#undef SPARKLE_UNIT
#undef SPARKLE_PAIRS
#undef SPARKLE_MOST_ROWS
}  // namespace avx_vnni
SPARKLE_X86_END

// Four rows by two vectors, the weights' two, and the product and the broadcast of the row in turn: 12 of 16.
SPARKLE_X86_BEGIN(SPARKLE_FEATURES_AVX2)
namespace avx2 {
#define SPARKLE_UNIT Avx2
#define SPARKLE_PAIRS 1
#define SPARKLE_MOST_ROWS 4
#include "backends/cpu/gemm/integers/integer_tile-inl.h"
#undef SPARKLE_UNIT
#undef SPARKLE_PAIRS
#undef SPARKLE_MOST_ROWS
}  // namespace avx2
SPARKLE_X86_END

// Each table is made where its unit is asked for: the code that makes it is compiled for the unit too.
const IntegerTileKernels* integer_tile_kernels_of(std::string_view unit) {
  if (unit == "avx512-vnni") {
    static const IntegerTileKernels kernels = avx512_vnni::make_integer_tiles();
    return &kernels;
  }
  if (unit == "avx-vnni") {
    static const IntegerTileKernels kernels = avx_vnni::make_integer_tiles();
    return &kernels;
  }
  if (unit == "avx2-int16") {
    static const IntegerTileKernels kernels = avx2::make_integer_tiles();
    return &kernels;
  }
  return nullptr;
}

}  // namespace sparkle::cpu
#elif defined(__aarch64__)
namespace sparkle::cpu {

SPARKLE_ARM_DOT_BEGIN
namespace neon_dot {
#define SPARKLE_UNIT NeonDot
#define SPARKLE_PAIRS 0
#define SPARKLE_MOST_ROWS 6
#include "backends/cpu/gemm/integers/integer_tile-inl.h"
#undef SPARKLE_UNIT
#undef SPARKLE_PAIRS
#undef SPARKLE_MOST_ROWS
}  // namespace neon_dot
SPARKLE_ARM_DOT_END

namespace neon {
#define SPARKLE_UNIT Neon
#define SPARKLE_PAIRS 0
#define SPARKLE_MOST_ROWS 4
#include "backends/cpu/gemm/integers/integer_tile-inl.h"
#undef SPARKLE_UNIT
#undef SPARKLE_PAIRS
#undef SPARKLE_MOST_ROWS
}  // namespace neon

const IntegerTileKernels* integer_tile_kernels_of(std::string_view unit) {
  if (unit == "neon-dot") {
    static const IntegerTileKernels kernels = neon_dot::make_integer_tiles();
    return &kernels;
  }
  if (unit == "neon") {
    static const IntegerTileKernels kernels = neon::make_integer_tiles();
    return &kernels;
  }
  return nullptr;
}

}  // namespace sparkle::cpu
#else
namespace sparkle::cpu {
const IntegerTileKernels* integer_tile_kernels_of(std::string_view) { return nullptr; }
}  // namespace sparkle::cpu
#endif
