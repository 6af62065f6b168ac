// Reads a buffer, 16 bytes a thread and step, and writes nothing that is not there.
// build: roof_read
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"

layout(push_constant, scalar) uniform Push {
  Vec4s x, y;
  int count, rounds;
} push;

void main() {
  const int step = int(gl_NumWorkGroups.x * gl_WorkGroupSize.x);
  uvec4 seen = uvec4(0);
  for (int round = 0; round < push.rounds; ++round)
    for (int i = int(gl_GlobalInvocationID.x); i < push.count; i += step) seen ^= floatBitsToUint(push.x.v[i]) + uvec4(round);
  // Nobody knows that no buffer holds this, so every word is read.
  if (seen == uvec4(0x9e3779b9u, 0x7f4a7c15u, 0xbf58476du, 0x94d049bbu)) push.y.v[0] = vec4(1);
}
