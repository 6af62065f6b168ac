#include "backends/cpu/depthwise/integer_rows.h"

#include <cstddef>

#include "backends/cpu/dot_units.h"

#if SPARKLE_X86
namespace sparkle::cpu {

SPARKLE_X86_BEGIN(SPARKLE_FEATURES_AVX512_VNNI)
namespace avx512_vnni {
struct Zmm : Avx512Vnni {
  static inline V splat_byte(uint8_t v) { return _mm512_set1_epi8(static_cast<char>(v)); }
  static inline __mmask64 mask(int64_t count) { return count >= 64 ? ~0ull : (1ull << count) - 1; }
  static inline V load_bytes(const uint8_t* p, int64_t count) { return _mm512_maskz_loadu_epi8(mask(count), p); }
  static inline void save_bytes(V v, uint8_t* p, int64_t count) { _mm512_mask_storeu_epi8(p, mask(count), v); }
  static inline V exclusive(V a, V b) { return _mm512_xor_si512(a, b); }
  static inline V low_bytes(V a, V b) { return _mm512_unpacklo_epi8(a, b); }
  static inline V high_bytes(V a, V b) { return _mm512_unpackhi_epi8(a, b); }
  static inline V low_words(V a, V b) { return _mm512_unpacklo_epi16(a, b); }
  static inline V high_words(V a, V b) { return _mm512_unpackhi_epi16(a, b); }
  static inline V dot_wide(V sum, V bytes, const int16_t* w) {
    const V even = _mm512_and_si512(bytes, _mm512_set1_epi16(0xff)), odd = _mm512_srli_epi16(bytes, 8);
    return _mm512_dpwssd_epi32(_mm512_dpwssd_epi32(sum, even, _mm512_loadu_si512(w)), odd, _mm512_loadu_si512(w + 32));
  }
  static inline V pack_words(V a, V b) { return _mm512_packs_epi32(a, b); }
  static inline V pack_signed(V a, V b) { return _mm512_packs_epi16(a, b); }
  static inline V pack_unsigned(V a, V b) { return _mm512_packus_epi16(a, b); }
};
#define SPARKLE_UNIT Zmm
#include "backends/cpu/depthwise/integer_rows-inl.h"
#undef SPARKLE_UNIT
}  // namespace avx512_vnni
SPARKLE_X86_END

SPARKLE_X86_BEGIN(SPARKLE_FEATURES_AVX2)
namespace avx2 {
struct YmmBytes : Ymm {
  static inline V splat_byte(uint8_t v) { return _mm256_set1_epi8(static_cast<char>(v)); }
  static inline V load_bytes(const uint8_t* p, int64_t count) {
    if (count >= 32) return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    uint8_t bytes[32] = {};
    std::memcpy(bytes, p, static_cast<size_t>(count));
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes));
  }
  static inline void save_bytes(V v, uint8_t* p, int64_t count) {
    uint8_t bytes[32];
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(count >= 32 ? p : bytes), v);
    if (count < 32) std::memcpy(p, bytes, static_cast<size_t>(count));
  }
  static inline V exclusive(V a, V b) { return _mm256_xor_si256(a, b); }
  static inline V low_bytes(V a, V b) { return _mm256_unpacklo_epi8(a, b); }
  static inline V high_bytes(V a, V b) { return _mm256_unpackhi_epi8(a, b); }
  static inline V low_words(V a, V b) { return _mm256_unpacklo_epi16(a, b); }
  static inline V high_words(V a, V b) { return _mm256_unpackhi_epi16(a, b); }
  static inline V dot_wide(V sum, V bytes, const int16_t* w) {
    const V even = _mm256_and_si256(bytes, _mm256_set1_epi16(0xff)), odd = _mm256_srli_epi16(bytes, 8);
    const V w_even = load(reinterpret_cast<const int32_t*>(w)), w_odd = load(reinterpret_cast<const int32_t*>(w + 16));
    return add(add(sum, _mm256_madd_epi16(even, w_even)), _mm256_madd_epi16(odd, w_odd));
  }
  static inline V pack_words(V a, V b) { return _mm256_packs_epi32(a, b); }
  static inline V pack_signed(V a, V b) { return _mm256_packs_epi16(a, b); }
  static inline V pack_unsigned(V a, V b) { return _mm256_packus_epi16(a, b); }
};
#define SPARKLE_UNIT YmmBytes
#include "backends/cpu/depthwise/integer_rows-inl.h"
#undef SPARKLE_UNIT
}  // namespace avx2
SPARKLE_X86_END

IntegerRowKernel integer_row_kernel_of(std::string_view unit) {
  if (unit == "avx512-vnni") return {64, avx512_vnni::integer_row};
  if (unit == "avx2-int16") return {32, avx2::integer_row};
  return {};
}

}  // namespace sparkle::cpu
#else
namespace sparkle::cpu {
IntegerRowKernel integer_row_kernel_of(std::string_view) { return {}; }
}  // namespace sparkle::cpu
#endif
