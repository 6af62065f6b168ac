// The least and the largest of all elements and zero, in two steps: by workgroup into the workspace, and of these the scale and
// zero point of a tensor that is quantised by its own range.
// build: quantize_range
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "quantize.glsl"

layout(constant_id = 3) const bool kLast = false;  // x holds the pairs of the first step: E.count of them
shared vec2 found[gl_WorkGroupSize.x];

int place_of(int index) {
  int at = 0;
  for (int i = E.axes - 1; i >= 0; --i) {
    at += index % E.size[i] * E.strides[0][i];
    index /= E.size[i];
  }
  return at;
}
// NaN is passed over.
vec2 both(vec2 a, vec2 b) { return vec2(b.x < a.x ? b.x : a.x, b.y > a.y ? b.y : a.y); }

void main() {
  const int thread = int(gl_LocalInvocationID.x);
  vec2 range = vec2(0.0);
  for (int i = int(gl_GlobalInvocationID.x); i < E.count; i += int(gl_NumWorkGroups.x * gl_WorkGroupSize.x)) {
    Floats x = Floats(push.x);
    range = both(range, kLast ? vec2(x.v[2 * i], x.v[2 * i + 1]) : vec2(x.v[place_of(i)]));
  }
  found[thread] = range;
  for (int step = int(gl_WorkGroupSize.x) / 2; step > 0; step /= 2) {
    barrier();
    if (thread < step) found[thread] = both(found[thread], found[thread + step]);
  }
  if (thread > 0) return;
  range = found[0];
  if (!kLast) {
    Floats(push.y).v[2 * int(gl_WorkGroupID.x)] = range.x;
    Floats(push.y).v[2 * int(gl_WorkGroupID.x) + 1] = range.y;
    return;
  }
  const float scale = divided(range.y - range.x, 255.0);
  const bool real = scale > 0.0;  // nothing but zeros: any scale is right
  push.scale.v[0] = real ? scale : 1.0;
  push.zero.v[0] = uint8_t(real ? int(roundEven(clamp(divided(-range.x, scale), 0.0, 255.0))) : 0);
}
