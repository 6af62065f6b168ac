// The rotary family: pairs of elements of a row turned by the angle whose cosine and sine are given; what is behind the pairs
// stays. x: row; scale: cosines; bias: sines.
// build: rotary
// build: rotary_half -DHALF
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "rows.glsl"

layout(constant_id = 4) const bool kInterleaved = false;

void main() {
  const uint row = row_of_thread();
  if (row >= R.rows) return;
  const ivec4 origin = place_of(kRows, row);
  const uint pairs = R.own[0];
  for (uint i = depth(); i < R.elements - pairs; i += R.depth) {
    if (i >= pairs) {
      const ivec4 at = origin + place_of(kElements, i + pairs);
      push.y.v[at.w] = push.x.v[at.x];
      continue;
    }
    const ivec4 first = origin + place_of(kElements, kInterleaved ? 2u * i : i);
    const ivec4 second = origin + place_of(kElements, kInterleaved ? 2u * i + 1u : i + pairs);
    const ivec4 angle = origin + place_of(kElements, i);
    const float a = float(push.x.v[first.x]), b = float(push.x.v[second.x]);
    const float c = float(push.scale.v[angle.y]), s = float(push.bias.v[angle.z]);
    push.y.v[first.w] = ELEMENT(c * a - s * b);
    push.y.v[second.w] = ELEMENT(s * a + c * b);
  }
}
