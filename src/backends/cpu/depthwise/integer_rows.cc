#include "backends/cpu/depthwise/integer_rows.h"

#include <cstddef>

#include "backends/cpu/simd/dot_units.h"

#if SPARKLE_X86
namespace sparkle::cpu {

SPARKLE_X86_BEGIN(SPARKLE_FEATURES_AVX512_VNNI)
namespace avx512_vnni {
struct Rows : Avx512Vnni {
  static inline __mmask64 mask(int64_t count) { return count >= 64 ? ~0ull : (1ull << count) - 1; }
  static inline V load_bytes(const uint8_t* p, int64_t count) { return _mm512_maskz_loadu_epi8(mask(count), p); }
  static inline void save_bytes(V v, uint8_t* p, int64_t count) { _mm512_mask_storeu_epi8(p, mask(count), v); }
  static inline V exclusive(V a, V b) { return _mm512_xor_si512(a, b); }
  static inline V common(V a, V b) { return _mm512_and_si512(a, b); }
  static inline V dot_words(V sum, V a, V b) { return _mm512_dpwssd_epi32(sum, a, b); }
};
#define SPARKLE_MM(f) _mm512_##f
#include "backends/cpu/depthwise/integer_bytes-inl.h"
#include "backends/cpu/depthwise/integer_rows-inl.h"
#undef SPARKLE_MM
}  // namespace avx512_vnni
SPARKLE_X86_END

SPARKLE_X86_BEGIN(SPARKLE_FEATURES_AVX2)
// What the 256-bit units share. Fewer channels than a block are words of four where they are a multiple, else copied.
struct YmmRows : Ymm {
  static inline V words_of(int64_t count) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count / 4)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static inline V load_bytes(const uint8_t* p, int64_t count) {
    if (count >= 32) return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    if (count % 4 == 0) return _mm256_maskload_epi32(reinterpret_cast<const int*>(p), words_of(count));
    uint8_t bytes[32] = {};
    std::memcpy(bytes, p, static_cast<size_t>(count));
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes));
  }
  static inline void save_bytes(V v, uint8_t* p, int64_t count) {
    if (count >= 32) return _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v);
    if (count % 4 == 0) return _mm256_maskstore_epi32(reinterpret_cast<int*>(p), words_of(count), v);
    uint8_t bytes[32];
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(bytes), v);
    std::memcpy(p, bytes, static_cast<size_t>(count));
  }
  static inline V exclusive(V a, V b) { return _mm256_xor_si256(a, b); }
  static inline V common(V a, V b) { return _mm256_and_si256(a, b); }
};
SPARKLE_X86_END

SPARKLE_X86_BEGIN(SPARKLE_FEATURES_AVX512_VNNI)
namespace avx512_vnni_ymm {
struct Rows : YmmRows {
  static inline __mmask32 mask(int64_t count) { return count >= 32 ? ~__mmask32{0} : (__mmask32{1} << count) - 1; }
  static inline V load_bytes(const uint8_t* p, int64_t count) { return _mm256_maskz_loadu_epi8(mask(count), p); }
  static inline void save_bytes(V v, uint8_t* p, int64_t count) { _mm256_mask_storeu_epi8(p, mask(count), v); }
  static inline V dot_words(V sum, V a, V b) { return _mm256_dpwssd_epi32(sum, a, b); }
};
#define SPARKLE_MM(f) _mm256_##f
#include "backends/cpu/depthwise/integer_bytes-inl.h"
#include "backends/cpu/depthwise/integer_rows-inl.h"
#undef SPARKLE_MM
}  // namespace avx512_vnni_ymm
SPARKLE_X86_END

SPARKLE_X86_BEGIN(SPARKLE_FEATURES_AVX_VNNI)
namespace avx_vnni {
struct Rows : YmmRows {
  static inline V dot_words(V sum, V a, V b) { return _mm256_dpwssd_avx_epi32(sum, a, b); }
};
#define SPARKLE_MM(f) _mm256_##f
#include "backends/cpu/depthwise/integer_bytes-inl.h"
#include "backends/cpu/depthwise/integer_rows-inl.h"
#undef SPARKLE_MM
}  // namespace avx_vnni
SPARKLE_X86_END

SPARKLE_X86_BEGIN(SPARKLE_FEATURES_AVX2)
namespace avx2 {
struct Rows : YmmRows {
  static inline V dot_words(V sum, V a, V b) { return add(sum, _mm256_madd_epi16(a, b)); }
};
#define SPARKLE_MM(f) _mm256_##f
#include "backends/cpu/depthwise/integer_bytes-inl.h"
#include "backends/cpu/depthwise/integer_rows-inl.h"
#undef SPARKLE_MM
}  // namespace avx2
SPARKLE_X86_END

IntegerRowKernel integer_row_kernel_of(std::string_view unit, int64_t channels) {
  if (unit == "avx512-vnni") {
    // Half blocks where whole ones would do more channels.
    const int64_t whole = (channels + 63) / 64 * 64, narrow = (channels + 31) / 32 * 32;
    return narrow < whole ? IntegerRowKernel{32, avx512_vnni_ymm::integer_row} : IntegerRowKernel{64, avx512_vnni::integer_row};
  }
  if (unit == "avx-vnni") return {32, avx_vnni::integer_row};
  if (unit == "avx2-int16") return {32, avx2::integer_row};
  return {};
}

}  // namespace sparkle::cpu
#else
namespace sparkle::cpu {
IntegerRowKernel integer_row_kernel_of(std::string_view, int64_t) { return {}; }
}  // namespace sparkle::cpu
#endif
