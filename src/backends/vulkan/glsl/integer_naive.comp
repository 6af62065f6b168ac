// Sums of products of 8-bit integers, one output a thread, any layout and grouping: filters run fastest, then instances, then rows.
// build: integer_naive
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "integer_sums.glsl"

void main() {
  int index = int(gl_GlobalInvocationID.x + gl_GlobalInvocationID.y * gl_NumWorkGroups.x * gl_WorkGroupSize.x);
  const int instances = G.instances.x * G.instances.y * G.instances.z * G.instances.w;
  if (index >= G.m * G.n * instances) return;
  const int n = index % G.n;
  index /= G.n;
  const Instance at = instance_at(index % instances);
  const ivec4 pixel = pixel_of(index / instances);
  const ivec3 origin = pixel.yzw * G.stride.xyz - G.pad.xyz;
  const int x_zero = zero_of_x(), w_zero = zero_of_w(at.channel + n);
  int sum = 0;
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
        int weight = at.w + n * G.w_filter_stride + t * G.w_strides.x + r * G.w_strides.y + s * G.w_strides.z;
        for (int c = 0; c < G.filter_size.w; ++c) {
          sum += (integer_at(push.x, kTypeX, from) - x_zero) * (integer_at(push.w, kTypeW, weight) - w_zero);
          from += G.channel.x;
          weight += G.w_strides.w;
        }
      }
    }
  }
  put_integer(push.y, kTypeY, at.y + dot4(pixel, G.y_strides) + n * G.channel.y, finished(sum, at.channel + n));
}
