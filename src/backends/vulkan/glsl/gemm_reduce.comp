// Sums that workgroups shared: adds their parts (in f32, push.w points at them) and finishes them, one output a thread.
// build: gemm_reduce
// build: gemm_reduce_half -DHALF
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "gemm.glsl"

void main() {
  const int index = int(gl_GlobalInvocationID.x + gl_GlobalInvocationID.y * gl_NumWorkGroups.x * gl_WorkGroupSize.x);
  if (index >= G.m * G.n) return;
  const int instance = push.first_instance + int(gl_WorkGroupID.z);
  const Instance at = instance_at(instance);
  const int k = index % G.n, m = index / G.n;
  const ivec4 pixel = pixel_of(m);
  float sum = 0.0;
  for (int part = 0; part < push.parts; ++part) sum += Floats(push.w).v[partial_at(part, instance, m) + k];
  push.y.v[at.y + dot4(pixel, G.y_strides) + k * G.channel.y] = ELEMENT(finished(sum, at, pixel, k));
}
