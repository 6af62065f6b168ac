// Independent dot products of bytes for the unit SPARKLE_UNIT of dot_units.h, with operands that stay in registers: the sums of
// a micro-kernel without its loads. Included once per unit inside its region.

inline double dot_loop(double flops, float* sink) {
  using U = SPARKLE_UNIT;
  using V = U::V;
  // The latency of 5 on two pipes wants ten sums; the prepared operands of 16-bit products leave registers for eight.
  constexpr int kSums = U::kRegisters >= 32 ? 24 : U::kProducts == 2 ? 8 : 12;
  constexpr double kPerRound = 2.0 * 4 * U::kLanes * kSums;
  const auto rounds = static_cast<int64_t>(flops / kPerRound) + 1;
  uint8_t left[4] = {1, 2, 3, 4};
  int8_t right[4 * U::kLanes];
  std::memset(right, 1, sizeof right);
  typename U::Left a = U::left(left);
  typename U::Right b = U::right(right);
  V sum[kSums];
#pragma GCC unroll 24
  for (int i = 0; i < kSums; ++i) sum[i] = U::splat(i);
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 24
    for (int i = 0; i < kSums; ++i) {
      U::renew(a);
      sum[i] = U::dot(sum[i], a, b);
    }
  }
  V total = U::zero();
#pragma GCC unroll 24
  for (int i = 0; i < kSums; ++i) total = U::add(total, sum[i]);
  int32_t lanes[U::kLanes];
  U::store_words(total, lanes, U::kLanes);
  *sink += static_cast<float>(lanes[0]);
  return static_cast<double>(rounds) * kPerRound;
}
