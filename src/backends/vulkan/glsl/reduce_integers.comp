// Rows of integers and truth values: computed modulo 2^64 in two words, of which an element keeps the low bits. Rows are never cut.
// build: reduce_integers_1 -DBITS=8 -DCELL=uint8_t
// build: reduce_integers_2 -DBITS=16 -DCELL=uint16_t
// build: reduce_integers_4 -DBITS=32 -DCELL=uint
// build: reduce_integers_8 -DBITS=64 -DCELL=uvec2
#version 460
#extension GL_GOOGLE_include_directive : require
#if BITS == 8
#extension GL_EXT_shader_8bit_storage : require
#elif BITS == 16
#extension GL_EXT_shader_16bit_storage : require
#endif
#include "buffers.glsl"
#define GATHERED uvec2
#include "rows.glsl"
#include "pointwise_integers.glsl"

layout(buffer_reference, scalar, buffer_reference_align = BITS / 8) buffer Cells { CELL v[]; };
layout(constant_id = 4) const uint kKind = 0;  // families/reduce/reduce.h
layout(constant_id = 5) const bool kSigned = false;
layout(constant_id = 6) const bool kTruth = false;
const uint kSum = 0, kMean = 1, kMax = 2, kMin = 3, kProduct = 4, kL1 = 5, kSumSquare = 7;

#if BITS == 64
#define WORD uvec2
#else
#define WORD uint
#endif
uvec2 value_of(WORD bits) {
#if BITS == 64
  return bits;
#else
  if (kTruth) return uvec2(bits != 0u ? 1u : 0u, 0u);
  if (!kSigned) return uvec2(bits, 0u);
  const int value = bitfieldExtract(int(bits), 0, BITS);
  return uvec2(uint(value), uint(value >> 31));
#endif
}
bool is_less(uvec2 a, uvec2 b) { return kSigned ? less_of(ivec2(a), ivec2(b)) : less_of(a, b); }
// The type's own ends: what the extrema of nothing are.
uvec2 lowest() {
  if (!kSigned) return uvec2(0u);
  return BITS == 64 ? uvec2(0u, 0x80000000u) : uvec2(~0u << (BITS - 1), ~0u);
}
uvec2 highest() {
  if (kTruth) return uvec2(1u, 0u);
  if (kSigned) return ~lowest();
  return BITS == 64 ? uvec2(~0u) : uvec2(~0u >> (32 - min(BITS, 32)), 0u);
}
uvec2 nothing() {
  switch (kKind) {
    case kMax: return lowest();
    case kMin: return highest();
    default: return uvec2(kKind == kProduct ? 1u : 0u, 0u);
  }
}
uvec2 joined(uvec2 a, uvec2 b) {
  switch (kKind) {
    case kMax: return is_less(a, b) ? b : a;
    case kMin: return is_less(b, a) ? b : a;
    case kProduct: return mul_of(a, b);
    default: return add_of(a, b);
  }
}
uvec2 begun(uvec2 x) {
  switch (kKind) {
    case kL1: return kSigned && (x.y >> 31) != 0u ? sub_of(uvec2(0u), x) : x;
    case kSumSquare: return mul_of(x, x);
    default: return x;
  }
}
uvec2 finished(uvec2 a) {
  if (kKind != kMean) return a;
  const uvec2 count = uvec2(R.elements, 0u);
  return kSigned ? uvec2(quotient(ivec2(a), ivec2(count))) : quotient(a, count);
}

void main() {
  const uint row = row_of_thread(), thread = gl_LocalInvocationID.x;
  const bool there = row < R.rows;
  uvec2 result = nothing();
  if (there) {
    const int from = place_of(kRows, row).x;
    for (uint i = depth(); i < R.elements; i += R.depth)
      result = joined(result, begun(value_of(WORD(Cells(push.x).v[from + place_of(kElements, i).x]))));
  }
  gathered[thread] = result;
  barrier();
  for (uint step = R.depth / 2; step > 0; step /= 2) {
    if (depth() < step) gathered[thread] = joined(gathered[thread], gathered[thread + step * apart()]);
    barrier();
  }
  if (!there || depth() != 0) return;
  result = finished(gathered[thread]);
#if BITS == 64
  Cells(push.y).v[place_of(kRows, row).w] = result;
#else
  Cells(push.y).v[place_of(kRows, row).w] = CELL(result.x);
#endif
}
