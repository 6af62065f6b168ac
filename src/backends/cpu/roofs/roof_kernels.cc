// Loops for the roofs, compiled once per target. Accumulators are named locals because SVE vectors have no size.
#include "backends/cpu/roofs/roof_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/roofs/roof_kernels.cc"
#include "backends/cpu/simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD
namespace hn = hwy::HWY_NAMESPACE;

#undef ROOF_8
#undef ROOF_24
#undef ROOF_CHAINS
#define ROOF_8(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
// 24 chains keep four FMA ports of latency 6 busy; 16 registers hold 12, enough for two ports.
#if SPARKLE_REGISTERS >= 32
#define ROOF_CHAINS 24
#define ROOF_24(X) ROOF_8(X) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16) X(17) X(18) X(19) X(20) X(21) X(22) X(23)
#else
#define ROOF_CHAINS 12
#define ROOF_24(X) ROOF_8(X) X(8) X(9) X(10) X(11)
#endif

double fma_loop(double flops, float* sink) {
  const hn::ScalableTag<float> d;
  const double per_iteration = 2.0 * ROOF_CHAINS * static_cast<double>(hn::Lanes(d));
  const auto iterations = static_cast<int64_t>(flops / per_iteration) + 1;
  // Every chain runs towards 1: an FMA that meets denormals or infinities would be many times slower or special. Compilers may
  // not know the numbers: they leave out a chain that they can see standing still.
  volatile float opaque_scale = 0.9990234375f, opaque_shift = 0.0009765625f;
  const auto scale = hn::Set(d, opaque_scale), shift = hn::Set(d, opaque_shift);
#undef X
#define X(i) auto sum##i = hn::Set(d, 1.5f + 0.125f * i);
  ROOF_24(X)
  for (int64_t i = 0; i < iterations; ++i) {
#undef X
#define X(i) sum##i = hn::MulAdd(sum##i, scale, shift);
    ROOF_24(X)
  }
  auto total = hn::Zero(d);
#undef X
#define X(i) total = hn::Add(total, sum##i);
  ROOF_24(X)
#undef X
  *sink += hn::GetLane(total);
  return static_cast<double>(iterations) * per_iteration;
}

uint32_t read_loop(const float* from, int64_t count, int64_t times) {
  const hn::ScalableTag<uint32_t> d;
  const auto* data = reinterpret_cast<const uint32_t*>(from);
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
#define X(i) auto sum##i = hn::Zero(d);
  ROOF_8(X)
#undef X
  for (; times > 0; --times) {
    for (int64_t at = 0; at < count; at += 8 * lanes) {
#define X(i) sum##i = hn::Xor(sum##i, hn::Load(d, data + at + i * lanes));
      ROOF_8(X)
#undef X
    }
    asm volatile("" ::: "memory");  // the next pass reads again
  }
  auto total = hn::Zero(d);
#define X(i) total = hn::Xor(total, sum##i);
  ROOF_8(X)
#undef X
  return hn::GetLane(total);
}

void copy_loop(const float* from, float* to, int64_t count, int64_t times) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (; times > 0; --times) {
    for (int64_t at = 0; at < count; at += 4 * lanes) {
      const auto a = hn::Load(d, from + at), b = hn::Load(d, from + at + lanes);
      const auto c = hn::Load(d, from + at + 2 * lanes), e = hn::Load(d, from + at + 3 * lanes);
      hn::Store(a, d, to + at);
      hn::Store(b, d, to + at + lanes);
      hn::Store(c, d, to + at + 2 * lanes);
      hn::Store(e, d, to + at + 3 * lanes);
    }
    asm volatile("" ::: "memory");
  }
}
#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sparkle::cpu {

RoofKernels roof_kernels(std::string_view unit) {
  if (const auto products = integer_products(unit)) return {products, nullptr, nullptr};
  if (const auto products = tile_products(unit)) return {products, nullptr, nullptr};
  return {SPARKLE_PICK(fma_loop, unit), SPARKLE_PICK(read_loop, unit), SPARKLE_PICK(copy_loop, unit)};
}

}  // namespace sparkle::cpu
#endif
