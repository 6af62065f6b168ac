// One output a thread: any layout, filter, stride, dilation and multiplier.
// build: depthwise_naive
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "depthwise.glsl"

layout(constant_id = 8) const bool kPlanes = false;  // neighbouring threads go along rows, else along channels

void main() {
  uint index = gl_GlobalInvocationID.x + gl_GlobalInvocationID.y * gl_NumWorkGroups.x * gl_WorkGroupSize.x;
  if (index >= R.count) return;
  ivec4 pixel;
  int k;
  if (!kPlanes) k = int(split(index, R.channels));
  pixel.w = int(split(index, R.w));
  pixel.z = int(split(index, R.h));
  pixel.y = int(split(index, R.d));
  if (kPlanes) k = int(split(index, R.channels));
  pixel.x = int(index);
  const ivec3 origin = pixel.yzw * R.stride.xyz - R.pad.xyz;
  const int from = pixel.x * R.x_pitch.x + int(divided(uint(k), R.multiplier)) * R.channel.x, weights = k * R.w_pitch.x;
  float sum = 0.0;
  for (int t = 0; t < R.filter_size.x; ++t) {
    const int d = origin.x + t * R.dilation.x;
    if (d < 0 || d >= R.x_size.y) continue;
    for (int r = 0; r < R.filter_size.y; ++r) {
      const int h = origin.y + r * R.dilation.y;
      if (h < 0 || h >= R.x_size.z) continue;
      for (int s = 0; s < R.filter_size.z; ++s) {
        const int w = origin.z + s * R.dilation.z;
        if (w < 0 || w >= R.x_size.w) continue;
        sum = fma(push.x.v[from + d * R.x_pitch.y + h * R.x_pitch.z + w * R.x_pitch.w],
                  push.w.v[weights + t * R.w_pitch.y + r * R.w_pitch.z + s * R.w_pitch.w], sum);
      }
    }
  }
  push.y.v[dot4(pixel, R.y_pitch) + k * R.channel.y] = finished(sum, pixel, k);
}
