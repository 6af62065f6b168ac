// One row of a depthwise stage on 8-bit integers, for the unit Bytes. Per four taps: four loads, eight interleavings
// that put the taps of a channel side by side, and 16-bit products of even and of odd taps with weights less their zero point:
// exact, since two products of 255 * 255 are far below 2^31.

template <bool kFlip>
void integer_pixels(const IntegerRowCall& call) {
  using U = Bytes;
  using V = U::V;
  constexpr int64_t kLanes = U::kLanes, kBlock = 4 * kLanes, kGroup = 4 * 2 * 2 * kLanes;
  const int64_t blocks = (call.channels + kBlock - 1) / kBlock;
  const V flip = U::splat_byte(call.flip), zero = U::splat(call.y_zero);
  for (int64_t q = 0; q < call.columns; ++q) {
    const uint8_t* const* taps = call.taps + q * call.groups * kTapGroup;
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t channel = block * kBlock, count = call.channels - channel;
      const int32_t* correction = call.correction + channel;
      V s0 = U::load(correction), s1 = U::load(correction + kLanes), s2 = U::load(correction + 2 * kLanes),
        s3 = U::load(correction + 3 * kLanes);
      const int16_t* w = call.weights + block * call.groups * kGroup;
      for (int64_t g = 0; g < call.groups; ++g, w += kGroup) {
        V x0 = U::load_bytes(taps[g * 4] + channel, count), x1 = U::load_bytes(taps[g * 4 + 1] + channel, count),
          x2 = U::load_bytes(taps[g * 4 + 2] + channel, count), x3 = U::load_bytes(taps[g * 4 + 3] + channel, count);
        if constexpr (kFlip)
          x0 = U::exclusive(x0, flip), x1 = U::exclusive(x1, flip), x2 = U::exclusive(x2, flip), x3 = U::exclusive(x3, flip);
        const V a = U::low_bytes(x0, x1), b = U::low_bytes(x2, x3), c = U::high_bytes(x0, x1), d = U::high_bytes(x2, x3);
        s0 = U::dot_wide(s0, U::low_words(a, b), w);
        s1 = U::dot_wide(s1, U::high_words(a, b), w + 4 * kLanes);
        s2 = U::dot_wide(s2, U::low_words(c, d), w + 8 * kLanes);
        s3 = U::dot_wide(s3, U::high_words(c, d), w + 12 * kLanes);
      }
      std::byte* y = call.y + q * call.y_stride;
      if (call.scale) {
        const float* scale = call.scale + channel;
        s0 = U::add(U::scaled(s0, scale, call.low, call.high), zero);
        s1 = U::add(U::scaled(s1, scale + kLanes, call.low, call.high), zero);
        s2 = U::add(U::scaled(s2, scale + 2 * kLanes, call.low, call.high), zero);
        s3 = U::add(U::scaled(s3, scale + 3 * kLanes, call.low, call.high), zero);
        const V low = U::pack_words(s0, s1), high = U::pack_words(s2, s3);
        const V bytes = call.is_signed ? U::pack_signed(low, high) : U::pack_unsigned(low, high);
        U::save_bytes(bytes, reinterpret_cast<uint8_t*>(y) + channel, count);
      } else {
        int32_t sums[4 * U::kLanes];
        U::store_words(s0, sums, kLanes), U::store_words(s1, sums + kLanes, kLanes);
        U::store_words(s2, sums + 2 * kLanes, kLanes), U::store_words(s3, sums + 3 * kLanes, kLanes);
        for (int64_t j = 0; j < 4; ++j)
          for (int64_t lane = 0; lane < kLanes; ++lane) {
            const int64_t at = lane / 4 * 16 + j * 4 + lane % 4;
            if (at < count) reinterpret_cast<int32_t*>(y)[channel + at] = sums[j * kLanes + lane];
          }
      }
    }
  }
}

inline void integer_row(const IntegerRowCall& call) {
  if (call.flip) {
    integer_pixels<true>(call);
  } else {
    integer_pixels<false>(call);
  }
}
