// Rows of doubles: as softmax.comp, but that rows are never cut.
// build: softmax_doubles
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#define GATHERED dvec2
#include "rows.glsl"
#include "pointwise_doubles.glsl"

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Doubles { double v[]; };
layout(constant_id = 4) const bool kLogarithm = false;

// Largest element, and the sum of exp(x - largest).
dvec2 joined(dvec2 a, dvec2 b) {
  const double largest = b.x > a.x ? b.x : a.x;
  const double left = a.y == 0.0lf || a.x == largest ? a.y : a.y * exp_of_f64(a.x - largest);
  const double right = b.y == 0.0lf || b.x == largest ? b.y : b.y * exp_of_f64(b.x - largest);
  return dvec2(largest, left + right);
}

void main() {
  const uint row = row_of_thread(), thread = gl_LocalInvocationID.x;
  const bool there = row < R.rows;
  const ivec4 origin = there ? place_of(kRows, row) : ivec4(0);
  dvec2 seen = dvec2(-infinity_of_f64(), 0.0lf);
  if (there)
    for (uint i = depth(); i < R.elements; i += R.depth) {
      const double x = Doubles(push.x).v[origin.x + place_of(kElements, i).x];
      if (x > seen.x) seen = dvec2(x, (seen.y == 0.0lf ? 0.0lf : seen.y * exp_of_f64(seen.x - x)) + 1.0lf);
      else if (x != seen.x) seen.y += exp_of_f64(x - seen.x);
      else if (!is_infinity_of_f64(x)) seen.y += 1.0lf;
      else if (x > 0.0lf) seen.y = nan_of_f64();
    }
  gathered[thread] = seen;
  barrier();
  for (uint step = R.depth / 2; step > 0; step /= 2) {
    if (depth() < step) gathered[thread] = joined(gathered[thread], gathered[thread + step * apart()]);
    barrier();
  }
  if (!there) return;
  seen = gathered[thread - depth() * apart()];
  // Nothing but negative infinities has no sum; the definition gives NaN, as for any infinity that is the largest.
  const double total = is_infinity_of_f64(seen.x) ? nan_of_f64() : seen.y;
  const double logarithm = kLogarithm ? log_of_f64(total) : 0.0lf;
  for (uint i = depth(); i < R.elements; i += R.depth) {
    const ivec4 at = origin + place_of(kElements, i);
    const double x = Doubles(push.x).v[at.x] - seen.x;
    Doubles(push.y).v[at.w] = kLogarithm ? x - logarithm : exp_of_f64(x) / total;
  }
}
