// Reads a working set over and over, past the caches of single cores: each thread reads 16 bytes, then others a step further on.
// What holds the working set shows in the time.
// build: roof_levels
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"

// Coherent reads come from what all cores share.
layout(buffer_reference, scalar, buffer_reference_align = 16) coherent buffer SharedVec4s { vec4 v[]; };
layout(push_constant, scalar) uniform Push {
  SharedVec4s x;
  Vec4s y;
  int count, step, start, rounds;  // in vectors; step < count
} push;

void main() {
  int at = int((gl_GlobalInvocationID.x + uint(push.start)) % uint(push.count));
  uvec4 seen = uvec4(0);
  for (int round = 0; round < push.rounds; ++round)
    [[unroll]] for (int i = 0; i < 4; ++i) {
      seen ^= floatBitsToUint(push.x.v[at]) + uvec4(round);
      at += push.step;
      at -= at >= push.count ? push.count : 0;
    }
  // Nobody knows that no buffer holds this, so every word is read.
  if (seen == uvec4(0x9e3779b9u, 0x7f4a7c15u, 0xbf58476du, 0x94d049bbu)) push.y.v[0] = vec4(1);
}
