// One output a thread, any layout: the first optimisation step, and what runs shapes that nothing else takes.
// build: gemm_naive
// build: gemm_naive_half -DHALF
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "gemm.glsl"

void main() {
  const int index = int(gl_GlobalInvocationID.x + gl_GlobalInvocationID.y * gl_NumWorkGroups.x * gl_WorkGroupSize.x);
  if (index >= G.m * G.n) return;
  const Instance at = instance_at(push.first_instance + int(gl_WorkGroupID.z));
  const int k = index % G.n;
  const ivec4 pixel = pixel_of(index / G.n);
  const ivec3 origin = pixel.yzw * G.stride.xyz - G.pad.xyz;
  float sum = 0.0;
  for (int t = 0; t < G.filter_size.x; ++t) {
    const int d = origin.x + t * G.dilation.x;
    if (d < 0 || d >= G.x_size.y) continue;
    for (int r = 0; r < G.filter_size.y; ++r) {
      const int h = origin.y + r * G.dilation.y;
      if (h < 0 || h >= G.x_size.z) continue;
      for (int s = 0; s < G.filter_size.z; ++s) {
        const int w = origin.z + s * G.dilation.z;
        if (w < 0 || w >= G.x_size.w) continue;
        int from = at.x + dot4(ivec4(pixel.x, d, h, w), G.x_strides);
        int weight = at.w + k * G.w_filter_stride + t * G.w_strides.x + r * G.w_strides.y + s * G.w_strides.z;
        for (int c = 0; c < G.filter_size.w; ++c) {
          sum = fma(float(push.x.v[from]), float(push.w.v[weight]), sum);
          from += G.channel.x;
          weight += G.w_strides.w;
        }
      }
    }
  }
  push.y.v[at.y + dot4(pixel, G.y_strides) + k * G.channel.y] = ELEMENT(finished(sum, at, pixel, k));
}
