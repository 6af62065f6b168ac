// Reads shared memory as fast as a core can: 16 bytes a thread and step, neighbours side by side.
// build: roof_shared
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"

layout(push_constant, scalar) uniform Push {
  Vec4s y;
  int rounds;
} push;

const int kVectors = 512;  // 8 KB
shared uvec4 kept[kVectors];

void main() {
  const int thread = int(gl_LocalInvocationID.x);
  for (int i = thread; i < kVectors; i += int(gl_WorkGroupSize.x)) kept[i] = uvec4(i * push.rounds);
  barrier();
  uvec4 seen = uvec4(0);
  for (int round = 0; round < push.rounds; ++round)
    [[unroll]] for (int i = 0; i < 8; ++i) seen ^= kept[(thread + (round * 8 + i) * 33) & (kVectors - 1)] + uvec4(round);
  if (seen == uvec4(0x9e3779b9u, 0x7f4a7c15u, 0xbf58476du, 0x94d049bbu)) push.y.v[0] = vec4(1);  // never: all is needed
}
