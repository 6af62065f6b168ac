// The softmax family: a row's largest element and the sum of exponentials in one pass, what is stored in a second one. Long rows
// of which there are few are cut into parts: one dispatch finds the figures of each, a second one joins and applies them.
// build: softmax
// build: softmax_half -DHALF
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "rows.glsl"

layout(constant_id = 4) const bool kLogarithm = false;

// Largest element, and the sum of exp(x - largest).
vec2 joined(vec2 a, vec2 b) {
  const float largest = b.x > a.x ? b.x : a.x;
  const float left = a.y == 0.0 || a.x == largest ? a.y : a.y * exp_of(a.x - largest);
  const float right = b.y == 0.0 || b.x == largest ? b.y : b.y * exp_of(b.x - largest);
  return vec2(largest, left + right);
}

void main() {
  const uint row = row_of_thread(), thread = gl_LocalInvocationID.x;
  const uint part = gl_WorkGroupID.z, first = part * R.part_length, end = min(first + R.part_length, R.elements);
  const bool there = row < R.rows;
  const ivec4 origin = there ? place_of(kRows, row) : ivec4(0);
  vec2 seen = vec2(-infinity_of(), 0.0);
  if (there && kStage < 2) {
    for (uint i = first + depth(); i < end; i += R.depth) {
      const float x = float(push.x.v[origin.x + place_of(kElements, i).x]);
      if (x > seen.x) seen = vec2(x, (seen.y == 0.0 ? 0.0 : seen.y * exp_of(seen.x - x)) + 1.0);
      else if (x != seen.x) seen.y += exp_of(x - seen.x);
      else if (!is_infinity_of(x)) seen.y += 1.0;
      else if (x > 0.0) seen.y = nan_of();
    }
  } else if (there) {
    for (uint i = depth(); i < R.parts; i += R.depth) {
      const uint at = 2 * (i * R.rows + row);
      seen = joined(seen, vec2(push.work.v[at], push.work.v[at + 1]));
    }
  }
  gathered[thread] = seen;
  barrier();
  for (uint step = R.depth / 2; step > 0; step /= 2) {
    if (depth() < step) gathered[thread] = joined(gathered[thread], gathered[thread + step * apart()]);
    barrier();
  }
  if (!there) return;
  seen = gathered[thread - depth() * apart()];
  if (kStage == 1) {
    if (depth() == 0) {
      const uint at = 2 * (part * R.rows + row);
      push.work.v[at] = seen.x;
      push.work.v[at + 1] = seen.y;
    }
    return;
  }
  // Nothing but negative infinities has no sum; the definition gives NaN, as for any infinity that is the largest.
  const float total = is_infinity_of(seen.x) ? nan_of() : seen.y;
  const float logarithm = kLogarithm ? log_of(total) : 0.0;
  for (uint i = first + depth(); i < end; i += R.depth) {
    const ivec4 at = origin + place_of(kElements, i);
    const float x = float(push.x.v[at.x]) - seen.x;
    push.y.v[at.w] = ELEMENT(kLogarithm ? x - logarithm : exp_of(x) / total);
  }
}
