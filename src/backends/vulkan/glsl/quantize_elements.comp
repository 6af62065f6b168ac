// Quantize, dequantize, sums of quantised tensors and factors: one element a thread, or four neighbours in memory.
// Integers, or floats of 8 and 4 bits.
// build: quantize_elements
// build: quantize_elements_half -DHALF
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "quantize.glsl"
#include "pointwise_narrow.glsl"

layout(constant_id = 3) const int kKind = 0;  // quantize, dequantize, (dynamic,) add, (average,) factor
layout(constant_id = 4) const int kWidth = 1;
layout(constant_id = 5) const uint kTypeX = 0;
layout(constant_id = 6) const uint kTypeZero = 0;
layout(constant_id = 7) const uint kTypeB = 0;  // and of its zero point
layout(constant_id = 8) const uint kTypeY = 0;  // and of its zero point
layout(constant_id = 9) const bool kWideFactor = false;  // of fp16 values, but stored in f32
// The narrow float of x or y and its zero point (families/values/narrow.h).
layout(constant_id = 10) const int kExponentBits = 4;
layout(constant_id = 11) const int kMantissaBits = 3;
layout(constant_id = 12) const int kBias = 7;
layout(constant_id = 13) const uint kLargest = 0;
layout(constant_id = 14) const uint kBeyond = 0;
layout(constant_id = 15) const uint kNan = 0;
layout(constant_id = 16) const bool kUnsignedZero = false;

const int kQuantize = 0, kDequantize = 1, kAdd = 3, kFactor = 5;
const int kX = 0, kY = 1, kScale = 2, kZero = 3, kB = 4, kBScale = 5;  // operands with strides of their own

const uint kNarrowFloat = 10;  // byte_types.h

float narrow_at(Bytes p, int at) {
  return float_of_narrow(uint(p.v[at]), kExponentBits, kMantissaBits, kBias, kLargest, kBeyond, kNan, kUnsignedZero);
}
uint code_of(float x) {
  return narrow_of_float(x, kExponentBits, kMantissaBits, kBias, kLargest, kBeyond, kNan, kUnsignedZero);
}

int place[kOperands];  // of this thread's first element
void find(int index) {
  [[unroll]] for (int o = 0; o <= kBScale; ++o) place[o] = 0;
  for (int i = E.axes - 1; i >= 0; --i) {
    const int at = index % E.size[i];
    index /= E.size[i];
    [[unroll]] for (int o = 0; o <= kBScale; ++o) place[o] += at * E.strides[o][i];
  }
}

// x - zero of 32-bit integers, which may take 33 bits, as the nearest float.
float difference(int x, int zero) {
  const int d = x - zero;
  if (((x ^ zero) & (x ^ d)) >= 0) return float(d);
  const int halved = (x >> 1) - (zero >> 1) - (~x & zero & 1);  // rounded down; the last bit stands for all below
  return 2.0 * float(halved | (d & 1));
}

#ifdef HALF
// The nearest number of 16 bits, to even: quotients have the precision of the scale.
float nearest_half(float x) {
  const uint bits = floatBitsToUint(x), sign_bit = bits & 0x80000000u, size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) return x;
  if (size >= 0x477ff000u) return uintBitsToFloat(sign_bit | 0x7f800000u);
  if (size >= 0x38800000u) return uintBitsToFloat(sign_bit | ((size + 0xfffu + (size >> 13 & 1u)) & ~0x1fffu));
  // Below 2^-14 there are multiples of 2^-24: the bits that a sum with 1/2 keeps.
  precise float sum = uintBitsToFloat(size) + 0.5;
  precise float kept = sum - 0.5;
  return uintBitsToFloat(sign_bit | floatBitsToUint(kept));
}
#endif

// Element i of the four of this thread.
float factor_here() {
  precise float product = float(Elements(push.x).v[place[kX]]) * float(push.scale.v[place[kScale]]);
  return divided(product, float(Elements(push.b).v[place[kB]]));
}
float dequantized(int x, int i) {
  const int last = E.axes - 1;
  const int zero = integer_at(push.zero, kTypeZero, place[kZero] + i * E.strides[kZero][last]);
  precise float value = difference(x, zero) * float(push.scale.v[place[kScale] + i * E.strides[kScale][last]]);
  return value;
}
int quantized_from(float x, int i) {
  const int last = E.axes - 1;
  const int zero = integer_at(push.zero, kTypeZero, place[kZero] + i * E.strides[kZero][last]);
  const float scale = float(push.scale.v[place[kScale] + i * E.strides[kScale][last]]);
#ifdef HALF
  return quantized(nearest_half(divided(x, scale)), 1.0, zero, push.range);
#else
  return quantized(x, scale, zero, push.range);
#endif
}
// The sum cut off, its last bit set where anything was: rounded once, to the narrow type.
float odd_sum(float a, float b) {
  precise float sum = a + b;
  precise float part = sum - a;
  precise float rest = (a - (sum - part)) + (b - part);
  const uint bits = floatBitsToUint(sum);
  if (is_nan(sum) || (bits & 0x7f800000u) == 0x7f800000u || rest == 0.0 || (bits & 1u) != 0u) return sum;
  return uintBitsToFloat((rest < 0.0) == (sum < 0.0) ? bits + 1u : bits - 1u);
}
float narrow_dequantized() {
  precise float value = (narrow_at(push.x, place[kX]) - narrow_at(push.zero, place[kZero])) *
                        float(push.scale.v[place[kScale]]);
  return value;
}
uint narrow_quantized(float x) {
  float q = divided(x, float(push.scale.v[place[kScale]]));
#ifdef HALF
  q = nearest_half(q);
#endif
  const float value = odd_sum(q, narrow_at(push.zero, place[kZero]));
  const float low = float(push.range.x), high = float(push.range.y);
  return code_of(value < low ? low : value > high ? high : value);
}
int added(int a, int b) {
  precise float left = float(a - integer_at(push.zero, kTypeZero, 0)) * float(push.scale.v[0]);
  precise float right = float(b - integer_at(push.b_zero, kTypeB, 0)) * float(push.b_scale.v[0]);
  precise float sum = left + right;
  return quantized(sum, float(push.y_scale.v[0]), integer_at(push.y_zero, kTypeY, 0), push.range);
}

void main() {
  const int thread = int(gl_GlobalInvocationID.x + gl_GlobalInvocationID.y * gl_NumWorkGroups.x * gl_WorkGroupSize.x);
  if (thread >= E.count / kWidth) return;
  find(thread * kWidth);
  if (kWidth == 4) {
    const int from = place[kX] >> 2, to = place[kY] >> 2;
    if (kKind == kQuantize) {
      const vec4 x = vec4(Element4s(push.x).v[from]);
      ivec4 y;
      [[unroll]] for (int i = 0; i < 4; ++i) y[i] = quantized_from(x[i], i);
      Words(push.y).v[to] = packed(y);
    } else if (kKind == kDequantize) {
      const ivec4 x = unpacked(Words(push.x).v[from], kTypeX);
      vec4 y;
      [[unroll]] for (int i = 0; i < 4; ++i) y[i] = dequantized(x[i], i);
      Element4s(push.y).v[to] = ELEMENT4(y);
    } else {
      const ivec4 a = unpacked(Words(push.x).v[from], kTypeX), b = unpacked(Words(push.b).v[place[kB] >> 2], kTypeB);
      ivec4 y;
      [[unroll]] for (int i = 0; i < 4; ++i) y[i] = added(a[i], b[i]);
      Words(push.y).v[to] = packed(y);
    }
    return;
  }
  if (kKind == kFactor && kWideFactor) {
    Floats(push.y).v[place[kY]] = factor_here();
  } else if (kKind == kFactor) {
    Elements(push.y).v[place[kY]] = ELEMENT(factor_here());
  } else if (kKind == kDequantize && kTypeX == kNarrowFloat) {
    Elements(push.y).v[place[kY]] = ELEMENT(narrow_dequantized());
  } else if (kKind == kQuantize && kTypeY == kNarrowFloat) {
    push.y.v[place[kY]] = uint8_t(narrow_quantized(float(Elements(push.x).v[place[kX]])));
  } else if (kKind == kDequantize) {
    Elements(push.y).v[place[kY]] = ELEMENT(dequantized(integer_at(push.x, kTypeX, place[kX]), 0));
  } else if (kKind == kAdd) {
    const int a = integer_at(push.x, kTypeX, place[kX]), b = integer_at(push.b, kTypeB, place[kB]);
    put_integer(push.y, kTypeY, place[kY], added(a, b));
  } else {
    put_integer(push.y, kTypeY, place[kY], quantized_from(float(Elements(push.x).v[place[kX]]), 0));
  }
}
