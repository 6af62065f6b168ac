// For tests of how faults are found: a kernel that takes seconds, or some milliseconds.
// build: fault_slow -DROUNDS=268435456
// build: fault_late -DROUNDS=2097152
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"

layout(push_constant, scalar) uniform Push { Floats x; } push;

void main() {
  if (gl_GlobalInvocationID.x > 0 || gl_WorkGroupID.y > 0 || gl_WorkGroupID.z > 0) return;
  float sum = 0.5;
  for (int i = 0; i < ROUNDS; ++i) sum = fma(sum, 0.99, float(i) * 1e-12);
  if (sum == 123.0) push.x.v[0] = sum;
}
