// Reads a buffer and writes another, 16 bytes a thread and step.
// build: roof_copy
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"

layout(push_constant, scalar) uniform Push {
  Vec4s x, y;
  int count, rounds;
} push;

void main() {
  const int step = int(gl_NumWorkGroups.x * gl_WorkGroupSize.x);
  for (int round = 0; round < push.rounds; ++round)
    for (int i = int(gl_GlobalInvocationID.x); i < push.count; i += step) push.y.v[i] = push.x.v[i];
}
