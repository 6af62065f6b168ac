#include "backends/cpu/quantize/loops.h"

#include "backends/cpu/simd/x86_target.h"

namespace sparkle::cpu {

namespace portable {
#include "backends/cpu/quantize/loops-inl.h"
}  // namespace portable

#if SPARKLE_X86
SPARKLE_X86_BEGIN(SPARKLE_FEATURES_AVX2)
namespace avx2 {
#include "backends/cpu/quantize/loops-inl.h"
}  // namespace avx2
SPARKLE_X86_END

SPARKLE_X86_BEGIN(SPARKLE_FEATURES_AVX512)
namespace avx512 {
#include "backends/cpu/quantize/loops-inl.h"
}  // namespace avx512
SPARKLE_X86_END
#endif

// Each table is made where its unit is asked for: the code that makes it is compiled for the unit too.
const QuantizeLoops& quantize_loops_of([[maybe_unused]] std::string_view unit) {
#if SPARKLE_X86
  if (unit == "avx512") {
    static const QuantizeLoops loops = avx512::make_loops();
    return loops;
  }
  if (unit == "avx2") {
    static const QuantizeLoops loops = avx2::make_loops();
    return loops;
  }
#endif
  static const QuantizeLoops loops = portable::make_loops();
  return loops;
}

}  // namespace sparkle::cpu
