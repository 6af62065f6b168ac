// As many dot products of four bytes as the device can do at once: eight sums a thread that nothing else waits for.
// build: roof_dot_i8
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_spirv_intrinsics : require
#include "buffers.glsl"
#include "byte_dot.glsl"

layout(push_constant, scalar) uniform Push {
  Ints y;
  int rounds;
} push;

void main() {
  int sums[8];
  // Values that no compiler foresees.
  const int factor = push.rounds ^ 0x01020304, summand = int(gl_LocalInvocationID.x);
  [[unroll]] for (int i = 0; i < 8; ++i) sums[i] = i;
  for (int round = 0; round < push.rounds; ++round)
    [[unroll]] for (int repeat = 0; repeat < 8; ++repeat)
      [[unroll]] for (int i = 0; i < 8; ++i) sums[i] = signed_dot(sums[i], factor, 0) + summand;
  int sum = sums[0];
  [[unroll]] for (int i = 1; i < 8; ++i) sum ^= sums[i];
  if (sum == 123456789) push.y.v[0] = 1;  // hardly ever: the sums are needed
}
