// Activations in fp32, in the order of families/values/activation.h; the same formulas as the Vulkan backend's
// glsl/activations.glsl.
#pragma once

#include "backends/cuda/ptx/matrix.cuh"

#ifndef __CUDACC__
#include <cmath>
#endif

namespace sparkle::cuda {

SPARKLE_DEVICE float exp_of(float x) {
#ifdef __CUDACC__
  return __expf(x);
#else
  return std::exp(x);
#endif
}
SPARKLE_DEVICE float log_of(float x) {
#ifdef __CUDACC__
  return __logf(x);
#else
  return std::log(x);
#endif
}
SPARKLE_DEVICE float magnitude(float x) { return float_of(bits_of(x) & 0x7fffffffu); }
SPARKLE_DEVICE float most(float a, float b) { return a > b ? a : b; }
SPARKLE_DEVICE float clamped(float x, float low, float high) { return smaller_of(larger_of(x, low), high); }
// NaN stays what it is.
SPARKLE_DEVICE float rectified(float x) {
#ifdef __CUDACC__
  float y;
  asm("max.NaN.f32 %0, %1, 0f00000000;" : "=f"(y) : "f"(x));
  return y;
#else
  return x < 0.0f ? 0.0f : x;
#endif
}
SPARKLE_DEVICE float with_sign_of(float x, float sign) {
  return float_of((bits_of(x) & 0x7fffffffu) | (bits_of(sign) & 0x80000000u));
}

SPARKLE_DEVICE float sigmoid(float x) { return 1.0f / (1.0f + exp_of(-x)); }
// log(1 + x) for x in [0, 1]: by the series where x is small, since 1 + x loses what x has behind the 1 and fast logarithms are
// off by so much whatever they are.
SPARKLE_DEVICE float log_of_one_plus(float x) {
  if (x > 0.25f) return log_of(1.0f + x);
  return x *
         (1.0f - x * (1.0f / 2 -
                      x * (1.0f / 3 -
                           x * (1.0f / 4 -
                                x * (1.0f / 5 -
                                     x * (1.0f / 6 - x * (1.0f / 7 - x * (1.0f / 8 - x * (1.0f / 9 - x * (1.0f / 10))))))))));
}
SPARKLE_DEVICE float softplus(float x) { return most(x, 0.0f) + log_of_one_plus(exp_of(-magnitude(x))); }
// exp(x) - 1 for x <= 0: the series where the difference would cancel.
SPARKLE_DEVICE float exp_minus_one(float x) {
  if (x <= -0.25f) return exp_of(x) - 1.0f;
  return x * (1.0f + x * (0.5f + x * (1.0f / 6 + x * (1.0f / 24 + x * (1.0f / 120 + x * (1.0f / 720))))));
}
SPARKLE_DEVICE float tanh_of(float x) {
  const float e = exp_minus_one(-2.0f * magnitude(x));
  return with_sign_of(-e / (2.0f + e), x);
}
// Abramowitz and Stegun 7.1.26 is good to 1.5e-7 absolute; near zero the series keeps small values whole.
SPARKLE_DEVICE float erf_of(float x) {
  const float a = magnitude(x);
  if (a < 0.5f) {
    const float s = a * a;
    return x * (1.1283791671f +
                s * (-0.3761263890f + s * (0.1128379167f + s * (-0.0268661706f + s * (0.0052239776f + s * -0.0008548327f)))));
  }
  const float t = 1.0f / (1.0f + 0.3275911f * a);
  const float p = t * (0.254829592f + t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
  return with_sign_of(1.0f - p * exp_of(-a * a), x);
}

SPARKLE_DEVICE float activation_of(int32_t kind, float x, float a, float b) {
  switch (kind) {
    case 1: return rectified(x);
    case 2: return x < a ? a : x > b ? b : x;
    case 3: return x < 0.0f ? a * x : x;
    case 4: return x < 0.0f ? a * exp_minus_one(x) : x;
    case 5: return b * (x < 0.0f ? a * exp_minus_one(x) : x);
    case 6: return sigmoid(x);
    case 7: return clamped(a * x + b, 0.0f, 1.0f);
    case 8: return tanh_of(x);
    case 9: return x * sigmoid(x);
    case 10: return x * clamped(x / 6.0f + 0.5f, 0.0f, 1.0f);
    case 11: return 0.5f * x * (1.0f + erf_of(x * 0.70710678118654752f));
    case 12: return 0.5f * x * (1.0f + tanh_of(0.79788456080286536f * (x + 0.044715f * x * x * x)));
    case 13: return softplus(x);
    case 14: return x * tanh_of(softplus(x));
    default: return x;
  }
}
// Comparisons lose NaN: it is told by its bits.
SPARKLE_DEVICE float activated(int32_t kind, float x, float a, float b) {
  const float y = activation_of(kind, x, a, b);
  return kind != 0 && (bits_of(x) & 0x7fffffffu) > 0x7f800000u ? x : y;
}

}  // namespace sparkle::cuda
