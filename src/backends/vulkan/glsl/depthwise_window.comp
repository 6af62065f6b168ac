// Any filter, stride and dilation: one output a thread over any layout, with any multiplier, or four channels of one.
// build: depthwise_window_1 -DWIDTH=1 -DVALUE=float
// build: depthwise_window_4 -DWIDTH=4 -DVALUE=vec4
// build: depthwise_window_1_half -DWIDTH=1 -DVALUE=float -DHALF
// build: depthwise_window_4_half -DWIDTH=4 -DVALUE=vec4 -DHALF
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "depthwise.glsl"

layout(constant_id = 8) const bool kPlanes = false;  // neighbouring threads go along rows, else along channels
layout(constant_id = 9) const bool kPacked = false;  // filters as [tap][filter]; wide build only

VALUE input_at(int at) {
#if WIDTH == 4
  return vec4(Element4s(push.x).v[at >> 2]);
#else
  return float(push.x.v[at]);
#endif
}
VALUE weight_at(int t, int r, int s, int k) {
  const int at = k * R.w_strides.x + t * R.w_strides.y + r * R.w_strides.z + s * R.w_strides.w;
#if WIDTH == 4
  if (kPacked) return vec4(Element4s(push.w).v[(((t * R.filter_size.y + r) * R.filter_size.z + s) * R.filters + k) >> 2]);
  return vec4(push.w.v[at], push.w.v[at + R.w_strides.x], push.w.v[at + 2 * R.w_strides.x], push.w.v[at + 3 * R.w_strides.x]);
#else
  return float(push.w.v[at]);
#endif
}

void main() {
  uint index = gl_GlobalInvocationID.x + gl_GlobalInvocationID.y * gl_NumWorkGroups.x * gl_WorkGroupSize.x;
  if (index >= R.count) return;
  ivec4 pixel;
  int k;
  if (!kPlanes) k = WIDTH * int(fast_divmod(index, R.channels));
  pixel.w = int(fast_divmod(index, R.w));
  pixel.z = int(fast_divmod(index, R.h));
  pixel.y = int(fast_divmod(index, R.d));
  if (kPlanes) k = WIDTH * int(fast_divmod(index, R.channels));
  pixel.x = int(index);
  const ivec3 origin = pixel.yzw * R.stride.xyz - R.pad.xyz;
  const int from = pixel.x * R.x_strides.x + int(divided(uint(k), R.multiplier)) * R.channel.x;
  VALUE sum = VALUE(0.0);
  for (int t = 0; t < R.filter_size.x; ++t) {
    const int d = origin.x + t * R.dilation.x;
    if (d < 0 || d >= R.x_size.y) continue;
    for (int r = 0; r < R.filter_size.y; ++r) {
      const int h = origin.y + r * R.dilation.y;
      if (h < 0 || h >= R.x_size.z) continue;
      for (int s = 0; s < R.filter_size.z; ++s) {
        const int w = origin.z + s * R.dilation.z;
        if (w < 0 || w >= R.x_size.w) continue;
        sum = fma(input_at(from + d * R.x_strides.y + h * R.x_strides.z + w * R.x_strides.w), weight_at(t, r, s, k), sum);
      }
    }
  }
  const int to = dot4(pixel, R.y_strides) + k * R.channel.y;
#if WIDTH == 4
  [[unroll]] for (int l = 0; l < 4; ++l) sum[l] = finished(sum[l], pixel, k + l);
  Element4s(push.y).v[to >> 2] = ELEMENT4(sum);
#else
  push.y.v[to] = ELEMENT(finished(sum, pixel, k));
#endif
}
