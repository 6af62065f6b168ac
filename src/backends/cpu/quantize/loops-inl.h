// Plain loops that compilers turn into vectors, included once per instruction set. This file is compiled without contraction of
// products and sums: results must not depend on whether a machine fuses them.

template <bool kSigned>
inline int32_t integer(uint8_t v) {
  return kSigned ? static_cast<int32_t>(static_cast<int8_t>(v)) : static_cast<int32_t>(v);
}

// Adding and subtracting 1.5 * 2^23 rounds to even whatever is below 2^22, which bounds of at most 16 bits are.
inline uint8_t rounded(float value, const Rounding& r) {
  constexpr float kShift = 12582912.0f;
  value = value == value ? value : 0.0f;
  value = value < r.low ? r.low : value;
  value = value > r.high ? r.high : value;
  value = (value + kShift) - kShift;
  return static_cast<uint8_t>(static_cast<int32_t>(value) + r.zero);
}

inline void quantize(const float* x, int64_t count, const Rounding& rounding, uint8_t* y) {
  const Rounding r = rounding;
  for (int64_t i = 0; i < count; ++i) y[i] = rounded(x[i] / r.scale, r);
}

inline void quantize_lines(const float* x, int64_t lines, const Channels& channels, uint8_t* y) {
  const Channels ch = channels;
  for (int64_t line = 0; line < lines; ++line, x += ch.count, y += ch.count)
    for (int64_t c = 0; c < ch.count; ++c) y[c] = rounded(x[c] / ch.scale[c], {1, ch.low[c], ch.high[c], ch.zero[c]});
}

inline void least_and_most(const float* x, int64_t count, float& least, float& most) {
  float low[16], high[16];
  for (int j = 0; j < 16; ++j) low[j] = least, high[j] = most;
  int64_t i = 0;
  for (; i + 16 <= count; i += 16)
    for (int j = 0; j < 16; ++j) {
      low[j] = x[i + j] < low[j] ? x[i + j] : low[j];
      high[j] = x[i + j] > high[j] ? x[i + j] : high[j];
    }
  for (; i < count; ++i) low[0] = x[i] < low[0] ? x[i] : low[0], high[0] = x[i] > high[0] ? x[i] : high[0];
  for (int j = 0; j < 16; ++j) least = low[j] < least ? low[j] : least, most = high[j] > most ? high[j] : most;
}

template <bool kSigned>
void dequantize(const uint8_t* x, int64_t count, const Linear& linear, float* y) {
  const Linear l = linear;
  for (int64_t i = 0; i < count; ++i) y[i] = static_cast<float>(integer<kSigned>(x[i]) - l.zero) * l.scale;
}

template <bool kSigned>
void dequantize_lines(const uint8_t* x, int64_t lines, const Channels& channels, float* y) {
  const Channels ch = channels;
  for (int64_t line = 0; line < lines; ++line, x += ch.count, y += ch.count)
    for (int64_t c = 0; c < ch.count; ++c) y[c] = static_cast<float>(integer<kSigned>(x[c]) - ch.zero[c]) * ch.scale[c];
}

template <bool kSignedA, bool kSignedB>
void add(const uint8_t* a, const Linear& linear_a, const uint8_t* b, const Linear& linear_b, int64_t count,
         const Rounding& rounding, uint8_t* y) {
  const Linear la = linear_a, lb = linear_b;
  const Rounding r = rounding;
  for (int64_t i = 0; i < count; ++i) {
    const float u = static_cast<float>(integer<kSignedA>(a[i]) - la.zero) * la.scale;
    const float v = static_cast<float>(integer<kSignedB>(b[i]) - lb.zero) * lb.scale;
    y[i] = rounded((u + v) / r.scale, r);
  }
}

template <bool kSigned>
void sum(const uint8_t* x, int64_t pixels, int64_t stride, int64_t channels, int32_t* sums) {
  for (int64_t p = 0; p < pixels; ++p, x += stride)
    for (int64_t c = 0; c < channels; ++c) sums[c] += integer<kSigned>(x[c]);
}

inline QuantizeLoops make_loops() {
  return {quantize,
          quantize_lines,
          least_and_most,
          {dequantize<false>, dequantize<true>},
          {dequantize_lines<false>, dequantize_lines<true>},
          {{add<false, false>, add<false, true>}, {add<true, false>, add<true, true>}},
          {sum<false>, sum<true>}};
}
