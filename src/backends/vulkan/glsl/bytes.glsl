// Integers of 8, 16 and 32 bits in memory, four of 8 bits in a word, and arithmetic that gives the same bits on every device.
#extension GL_EXT_shader_8bit_storage : require
#include "quotient.glsl"
layout(buffer_reference, scalar, buffer_reference_align = 1) buffer Bytes { uint8_t v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Words { uint v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer Words4 { uvec4 v[]; };

// Element types of operands, bound when the pipeline is made (byte_types.h).
const uint kF32 = 0, kU8 = 1, kI8 = 2, kU16 = 3, kI16 = 4, kI32 = 5, kI4 = 6, kU4 = 7, kI2 = 8, kU2 = 9;

// Element `at` of integers of a type; words of more than a byte may lie anywhere, fewer than 8 bits in the low ones of a byte.
int integer_at(Bytes p, uint type, int at) {
  if (type == kU8) return int(p.v[at]);
  if (type == kI8) return bitfieldExtract(int(p.v[at]), 0, 8);
  if (type == kI32) return Ints(p).v[at];
  if (type >= kI4) {
    const int bits = int(p.v[at]), width = type >= kI2 ? 2 : 4;
    return type == kI4 || type == kI2 ? bitfieldExtract(bits, 0, width) : bits & ((1 << width) - 1);
  }
  const int two = int(p.v[2 * at]) | int(p.v[2 * at + 1]) << 8;
  return type == kI16 ? bitfieldExtract(two, 0, 16) : two;
}
void put_integer(Bytes p, uint type, int at, int value) {
  if (type == kI32) {
    Ints(p).v[at] = value;
  } else if (type == kU16 || type == kI16) {
    p.v[2 * at] = uint8_t(value & 255);
    p.v[2 * at + 1] = uint8_t(value >> 8 & 255);
  } else {
    p.v[at] = uint8_t(value & (type >= kI2 ? 3 : type >= kI4 ? 15 : 255));
  }
}
// The four bytes of a word, and back.
ivec4 unpacked(uint word, uint type) {
  const ivec4 v = ivec4(word, word >> 8, word >> 16, word >> 24);
  return type == kI8 ? bitfieldExtract(v, 0, 8) : v & 255;
}
uint packed(ivec4 v) {
  const uvec4 b = uvec4(v & 255);
  return b.x | b.y << 8 | b.z << 16 | b.w << 24;
}

// x / scale rounded to even plus zero, within `range`; NaN gives what zero gives (families/quantize/quantize.h).
int quantized(float x, float scale, int zero, ivec2 range) {
  const float low = float(range.x - zero), high = float(range.y - zero);
  const uint divisor = floatBitsToUint(scale) & 0x7fffffffu;
  float q = min(max(x / scale, low), high);
  float whole = roundEven(q);
  // A quotient of ordinary numbers is good enough unless it is nearly half way between two integers.
  const bool ordinary = (floatBitsToUint(x) & 0x7fffffffu) < 0x7f800000u && divisor > 0x01000000u && divisor < 0x7e000000u;
  if (!ordinary || abs(q - whole) > 0.5 - abs(q) * (1.0 / 262144.0)) {
    q = divided(x, scale);
    if (is_nan(q)) return clamp(zero, range.x, range.y);
    whole = roundEven(min(max(q, low), high));
  }
  return int(whole) + zero;
}

// An integer sum times a factor, rounded to even, plus zero, within `range` (families/integers/integers.h).
int requantized(int sum, float factor, int zero, ivec2 range) {
  const float value = float(sum) * factor;
  return int(roundEven(min(max(value, float(range.x - zero)), float(range.y - zero)))) + zero;
}
