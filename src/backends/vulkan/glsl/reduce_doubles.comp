// Rows of doubles: as reduce.comp, but that rows are never cut.
// build: reduce_doubles
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#define GATHERED dvec2
#include "rows.glsl"
#include "pointwise_doubles.glsl"

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Doubles { double v[]; };
layout(constant_id = 4) const uint kKind = 0;  // families/reduce/reduce.h
const uint kSum = 0, kMean = 1, kMax = 2, kMin = 3, kProduct = 4, kL1 = 5, kL2 = 6, kSumSquare = 7, kLogSum = 8, kLogSumExp = 9;

// What is kept of the elements seen so far; of a logarithm of a sum of exponentials the largest and the sum beside it.
dvec2 nothing() {
  if (kKind == kMax || kKind == kLogSumExp) return dvec2(-infinity_of_f64(), 0.0lf);
  if (kKind == kMin) return dvec2(infinity_of_f64(), 0.0lf);
  return dvec2(kKind == kProduct ? 1.0lf : 0.0lf, 0.0lf);
}
// Relative to what the sums are kept: an infinite largest would make them NaN.
double shift_of(double largest) { return is_infinity_of_f64(largest) ? 0.0lf : largest; }
dvec2 joined(dvec2 a, dvec2 b) {
  switch (kKind) {
    case kMax: return b.x > a.x || is_nan_of_f64(b.x) ? b : a;
    case kMin: return b.x < a.x || is_nan_of_f64(b.x) ? b : a;
    case kProduct: return dvec2(a.x * b.x, 0.0lf);
    case kLogSumExp: {
      const double largest = b.x > a.x ? b.x : a.x, shift = shift_of(largest);
      const double left = a.y == 0.0lf ? 0.0lf : a.y * exp_of_f64(shift_of(a.x) - shift);
      const double right = b.y == 0.0lf ? 0.0lf : b.y * exp_of_f64(shift_of(b.x) - shift);
      return dvec2(largest, left + right);
    }
    default: return a + b;
  }
}
dvec2 begun(double x) {
  switch (kKind) {
    case kL1: return dvec2(abs(x), 0.0lf);
    case kL2:
    case kSumSquare: return dvec2(x * x, 0.0lf);
    case kLogSumExp: return is_nan_of_f64(x) ? dvec2(-infinity_of_f64(), x) : dvec2(x, exp_of_f64(x - shift_of(x)));
    default: return dvec2(x, 0.0lf);
  }
}
double finished(dvec2 a) {
  switch (kKind) {
    case kMean: return R.elements == 0u ? nan_of_f64() : a.x / double(R.elements);
    case kL2: return sqrt(a.x);
    case kLogSum: return log_of_f64(a.x);
    case kLogSumExp: return log_of_f64(a.y) + shift_of(a.x);
    default: return a.x;
  }
}

void main() {
  const uint row = row_of_thread(), thread = gl_LocalInvocationID.x;
  const bool there = row < R.rows;
  dvec2 result = nothing();
  if (there) {
    const int from = place_of(kRows, row).x;
    for (uint i = depth(); i < R.elements; i += R.depth)
      result = joined(result, begun(Doubles(push.x).v[from + place_of(kElements, i).x]));
  }
  gathered[thread] = result;
  barrier();
  for (uint step = R.depth / 2; step > 0; step /= 2) {
    if (depth() < step) gathered[thread] = joined(gathered[thread], gathered[thread + step * apart()]);
    barrier();
  }
  if (there && depth() == 0) Doubles(push.y).v[place_of(kRows, row).w] = finished(gathered[thread]);
}
