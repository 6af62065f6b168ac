// The reduce family: each row of elements becomes one. Long rows of which there are few are cut into parts, whose results a second
// dispatch joins.
// build: reduce
// build: reduce_half -DHALF
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "rows.glsl"

layout(constant_id = 4) const uint kKind = 0;  // families/reduce/reduce.h
const uint kSum = 0, kMean = 1, kMax = 2, kMin = 3, kProduct = 4, kL1 = 5, kL2 = 6, kSumSquare = 7, kLogSum = 8, kLogSumExp = 9;

// What is kept of the elements seen so far; of a logarithm of a sum of exponentials the largest and the sum beside it.
vec2 nothing() {
  if (kKind == kMax || kKind == kLogSumExp) return vec2(-infinity_of(), 0.0);
  if (kKind == kMin) return vec2(infinity_of(), 0.0);
  return vec2(kKind == kProduct ? 1.0 : 0.0, 0.0);
}
// Relative to what the sums are kept: an infinite largest would make them NaN.
float shift_of(float largest) { return is_infinity_of(largest) ? 0.0 : largest; }
vec2 joined(vec2 a, vec2 b) {
  switch (kKind) {
    case kMax: return b.x > a.x || is_nan_of(b.x) ? b : a;
    case kMin: return b.x < a.x || is_nan_of(b.x) ? b : a;
    case kProduct: return vec2(a.x * b.x, 0.0);
    case kLogSumExp: {
      const float largest = b.x > a.x ? b.x : a.x, shift = shift_of(largest);
      const float left = a.y == 0.0 ? 0.0 : a.y * exp_of(shift_of(a.x) - shift);
      const float right = b.y == 0.0 ? 0.0 : b.y * exp_of(shift_of(b.x) - shift);
      return vec2(largest, left + right);
    }
    default: return a + b;
  }
}
vec2 begun(float x) {
  switch (kKind) {
    case kL1: return vec2(abs(x), 0.0);
    case kL2:
    case kSumSquare: return vec2(x * x, 0.0);
    case kLogSumExp: return is_nan_of(x) ? vec2(-infinity_of(), x) : vec2(x, exp_of(x - shift_of(x)));
    default: return vec2(x, 0.0);
  }
}
float finished(vec2 a) {
  switch (kKind) {
    case kMean: return R.elements == 0u ? nan_of() : a.x / float(R.elements);
    case kL2: return sqrt(a.x);
    case kLogSum: return log_of(a.x);
    case kLogSumExp: return log_of(a.y) + shift_of(a.x);
    default: return a.x;
  }
}

void main() {
  const uint row = row_of_thread(), part = gl_WorkGroupID.z, first = part * R.part_length;
  const bool there = row < R.rows;
  vec2 result = nothing();
  if (there && kStage < 2) {
    const int from = place_of(kRows, row).x;
    const uint end = min(first + R.part_length, R.elements);
    for (uint i = first + depth(); i < end; i += R.depth)
      result = joined(result, begun(float(push.x.v[from + place_of(kElements, i).x])));
  } else if (there) {
    for (uint i = depth(); i < R.parts; i += R.depth) {
      const uint at = 2 * (i * R.rows + row);
      result = joined(result, vec2(push.work.v[at], push.work.v[at + 1]));
    }
  }
  const uint thread = gl_LocalInvocationID.x;
  gathered[thread] = result;
  barrier();
  for (uint step = R.depth / 2; step > 0; step /= 2) {
    if (depth() < step) gathered[thread] = joined(gathered[thread], gathered[thread + step * apart()]);
    barrier();
  }
  if (!there || depth() != 0) return;
  result = gathered[thread];
  if (kStage == 1) {
    const uint at = 2 * (part * R.rows + row);
    push.work.v[at] = result.x;
    push.work.v[at + 1] = result.y;
  } else {
    push.y.v[place_of(kRows, row).w] = ELEMENT(finished(result));
  }
}
