// One row of a depthwise stage on 8-bit integers, for the unit Bytes. Per four taps: four loads, eight interleavings
// that put the taps of a channel side by side, and 16-bit products of even and of odd taps with weights less their zero point:
// exact, since two products of 255 * 255 are far below 2^31. A tap that is left alone (the ninth of 3x3) is widened and
// multiplied without its neighbours. The last block ends with the last channel and does some of the one before again.

// kWhole: all blocks are; kGroups: of four taps, 0: as many as the call says.
template <bool kFlip, bool kWhole, int kGroups, bool kSingle>
void integer_pixels(const IntegerRowCall& call) {
  using U = Bytes;
  using V = U::V;
  constexpr int64_t kLanes = U::kLanes, kBlock = 4 * kLanes, kGroup = 4 * 2 * 2 * kLanes;
  const int64_t channels = call.channels, blocks = (channels + kBlock - 1) / kBlock, last = kWhole ? channels - kBlock : 0;
  const int64_t groups = kGroups > 0 ? kGroups : call.groups, columns = call.columns, y_stride = call.y_stride;
  const int64_t group_weights = (groups + kSingle) * kGroup;
  const V flip = U::splat_byte(call.flip), zero = U::splat(call.y_zero), nothing = U::zero();
  const float *scales = call.scale, low = call.low, high = call.high;
  const int16_t* const weights = call.weights;
  const int32_t* const corrections = call.correction;
  const bool is_signed = call.is_signed;
  std::byte* y = call.y;
  for (int64_t q = 0; q < columns; ++q, y += y_stride) {
    const uint8_t* const* taps = call.taps + q * call.taps_stride;
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t channel = std::min(block * kBlock, last), count = channels - channel;
      const auto pixel = [&](int64_t tap) {
        const uint8_t* from = taps[tap] + channel;
        V x;
        if constexpr (kWhole) {
          x = U::load_all(from);
        } else {
          x = U::load_bytes(from, count);
        }
        if constexpr (kFlip) x = U::exclusive(x, flip);
        return x;
      };
      const int32_t* correction = corrections + block * kBlock;
      V s0 = U::load(correction), s1 = U::load(correction + kLanes), s2 = U::load(correction + 2 * kLanes),
        s3 = U::load(correction + 3 * kLanes);
      const int16_t* w = weights + block * group_weights;
#pragma GCC unroll 4
      for (int64_t g = 0; g < groups; ++g, w += kGroup) {
        const V x0 = pixel(g * 4), x1 = pixel(g * 4 + 1), x2 = pixel(g * 4 + 2), x3 = pixel(g * 4 + 3);
        const V a = U::low_bytes(x0, x1), b = U::low_bytes(x2, x3), c = U::high_bytes(x0, x1), d = U::high_bytes(x2, x3);
        s0 = U::dot_wide(s0, U::low_words(a, b), w);
        s1 = U::dot_wide(s1, U::high_words(a, b), w + 4 * kLanes);
        s2 = U::dot_wide(s2, U::low_words(c, d), w + 8 * kLanes);
        s3 = U::dot_wide(s3, U::high_words(c, d), w + 12 * kLanes);
      }
      if constexpr (kSingle) {
        const V x = pixel(groups * 4), a = U::low_bytes(x, nothing), c = U::high_bytes(x, nothing);
        s0 = U::dot_even(s0, U::low_words(a, nothing), w);
        s1 = U::dot_even(s1, U::high_words(a, nothing), w + 4 * kLanes);
        s2 = U::dot_even(s2, U::low_words(c, nothing), w + 8 * kLanes);
        s3 = U::dot_even(s3, U::high_words(c, nothing), w + 12 * kLanes);
      }
      if (scales) {
        const float* scale = scales + block * kBlock;
        s0 = U::add(U::scaled(s0, scale, low, high), zero);
        s1 = U::add(U::scaled(s1, scale + kLanes, low, high), zero);
        s2 = U::add(U::scaled(s2, scale + 2 * kLanes, low, high), zero);
        s3 = U::add(U::scaled(s3, scale + 3 * kLanes, low, high), zero);
        const V first = U::pack_words(s0, s1), second = U::pack_words(s2, s3);
        const V bytes = is_signed ? U::pack_signed(first, second) : U::pack_unsigned(first, second);
        auto* to = reinterpret_cast<uint8_t*>(y) + channel;
        if constexpr (kWhole) {
          U::save_all(bytes, to);
        } else {
          U::save_bytes(bytes, to, count);
        }
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

template <bool kFlip, bool kWhole>
void integer_row_of(const IntegerRowCall& call) {
  if (!call.single) return integer_pixels<kFlip, kWhole, 0, false>(call);
  if (call.groups == 2) return integer_pixels<kFlip, kWhole, 2, true>(call);  // 3x3
  integer_pixels<kFlip, kWhole, 0, true>(call);
}

inline void integer_row(const IntegerRowCall& call) {
  const bool whole = call.channels >= 4 * Bytes::kLanes;
  if (call.flip) return whole ? integer_row_of<true, true>(call) : integer_row_of<true, false>(call);
  return whole ? integer_row_of<false, true>(call) : integer_row_of<false, false>(call);
}
