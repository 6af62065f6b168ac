// Exact dot products of four bytes per 32-bit lane on Arm, behind the names of dot_units.h. Arm multiplies bytes of one kind:
// the left operand's u8 become i8, less 128 (kSignedLeft), and whoever calls moves its zero point alike. "neon-dot" has an
// instruction for it, "neon" widens products to 16 and pairs of them to 32 bits.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__aarch64__)
#include <arm_neon.h>

// Between these functions may use dot products whatever the file is compiled for.
#if defined(__clang__)
#define SPARKLE_ARM_DOT_BEGIN _Pragma("clang attribute push(__attribute__((target(\"dotprod\"))), apply_to = function)")
#define SPARKLE_ARM_DOT_END _Pragma("clang attribute pop")
#else
#define SPARKLE_ARM_DOT_BEGIN _Pragma("GCC push_options") _Pragma("GCC target(\"arch=armv8.2-a+dotprod\")")
#define SPARKLE_ARM_DOT_END _Pragma("GCC pop_options")
#endif

namespace sparkle::cpu {

struct Neon {
  using V = int32x4_t;
  using Left = int8x16_t;
  using Right = int8x16_t;
  static constexpr int kLanes = 4, kRegisters = 16;  // of 32: products on their way take the others
  static constexpr bool kSignedLeft = true;

  static inline V zero() { return vdupq_n_s32(0); }
  static inline V splat(int32_t v) { return vdupq_n_s32(v); }
  static inline V load(const int32_t* p) { return vld1q_s32(p); }
  static inline Left left(const uint8_t* p) {
    uint32_t four;
    std::memcpy(&four, p, 4);
    return vreinterpretq_s8_u32(vdupq_n_u32(four ^ 0x80808080u));
  }
  static inline Right right(const int8_t* p) { return vld1q_s8(p); }
  static inline V dot(V sum, Left a, Right b) {
    const V low = vpaddlq_s16(vmull_s8(vget_low_s8(a), vget_low_s8(b))), high = vpaddlq_s16(vmull_high_s8(a, b));
    return vaddq_s32(sum, vpaddq_s32(low, high));
  }
  static inline V add(V a, V b) { return vaddq_s32(a, b); }
  static inline V sub(V a, V b) { return vsubq_s32(a, b); }
  static inline V mul(V a, V b) { return vmulq_s32(a, b); }
  // What is no number becomes the lower bound, as on the other units.
  static inline V scaled(V sum, const float* scale, float low, float high) {
    const float32x4_t v = vmulq_f32(vcvtq_f32_s32(sum), vld1q_f32(scale));
    return vcvtnq_s32_f32(vminnmq_f32(vmaxnmq_f32(v, vdupq_n_f32(low)), vdupq_n_f32(high)));
  }
  static inline void store_words(V v, int32_t* to, int64_t count) {
    int32_t lanes[4];
    vst1q_s32(count >= 4 ? to : lanes, v);
    if (count < 4) std::memcpy(to, lanes, static_cast<size_t>(count) * 4);
  }
  static inline void store_bytes(V v, uint8_t* to, int64_t count) {
    const int8x8_t bytes = vmovn_s16(vcombine_s16(vmovn_s32(v), vdup_n_s16(0)));
    const uint32_t four = vget_lane_u32(vreinterpret_u32_s8(bytes), 0);
    std::memcpy(to, &four, static_cast<size_t>(count < 4 ? count : 4));
  }
};

SPARKLE_ARM_DOT_BEGIN
struct NeonDot : Neon {
  static constexpr int kRegisters = 32;
  static inline V dot(V sum, Left a, Right b) { return vdotq_s32(sum, b, a); }
};
SPARKLE_ARM_DOT_END

}  // namespace sparkle::cpu
#endif
