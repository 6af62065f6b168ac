// What integer_rows-inl.h asks of a unit beyond dot_units.h, for vectors of any width: SPARKLE_MM(f) is the intrinsic f of that
// width, Rows the unit with what differs: loads and stores of some bytes, bitwise operations, products of 16-bit pairs.
struct Bytes : Rows {
  static inline V splat_byte(uint8_t v) { return SPARKLE_MM(set1_epi8)(static_cast<char>(v)); }
  static inline V low_bytes(V a, V b) { return SPARKLE_MM(unpacklo_epi8)(a, b); }
  static inline V high_bytes(V a, V b) { return SPARKLE_MM(unpackhi_epi8)(a, b); }
  static inline V low_words(V a, V b) { return SPARKLE_MM(unpacklo_epi16)(a, b); }
  static inline V high_words(V a, V b) { return SPARKLE_MM(unpackhi_epi16)(a, b); }
  static inline V dot_wide(V sum, V bytes, const int16_t* w) {
    const V even = common(bytes, SPARKLE_MM(set1_epi16)(0xff)), odd = SPARKLE_MM(srli_epi16)(bytes, 8);
    const V w_even = load(reinterpret_cast<const int32_t*>(w));
    const V w_odd = load(reinterpret_cast<const int32_t*>(w + 2 * kLanes));
    return dot_words(dot_words(sum, even, w_even), odd, w_odd);
  }
  static inline V dot_even(V sum, V words, const int16_t* w) {
    return dot_words(sum, words, load(reinterpret_cast<const int32_t*>(w)));
  }
  static inline V load_all(const uint8_t* p) { return load(reinterpret_cast<const int32_t*>(p)); }
  static inline void save_all(V v, uint8_t* p) { store_words(v, reinterpret_cast<int32_t*>(p), kLanes); }
  static inline V pack_words(V a, V b) { return SPARKLE_MM(packs_epi32)(a, b); }
  static inline V pack_signed(V a, V b) { return SPARKLE_MM(packs_epi16)(a, b); }
  static inline V pack_unsigned(V a, V b) { return SPARKLE_MM(packus_epi16)(a, b); }
};
