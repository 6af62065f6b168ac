// The mean of each channel of 8-bit integers: a workgroup sums size_x channels, its size_y threads of a channel a part of the
// pixels each.
// build: quantize_average
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "quantize.glsl"

layout(constant_id = 3) const uint kTypeX = 0;
layout(constant_id = 4) const uint kTypeY = 0;
shared int sums[gl_WorkGroupSize.y][gl_WorkGroupSize.x];

// Axes of the record: n, c, d, h, w.
void main() {
  const int c = int(gl_GlobalInvocationID.x), n = int(gl_WorkGroupID.y), slice = int(gl_LocalInvocationID.y);
  const int pixels = E.size[2] * E.size[3] * E.size[4];
  int sum = 0;
  if (c < E.size[1])
    for (int p = slice; p < pixels; p += int(gl_WorkGroupSize.y)) {
      const int w = p % E.size[4], h = p / E.size[4] % E.size[3], d = p / (E.size[4] * E.size[3]);
      sum += integer_at(push.x, kTypeX, n * E.strides[0][0] + c * E.strides[0][1] + d * E.strides[0][2] + h * E.strides[0][3] + w * E.strides[0][4]);
    }
  sums[slice][gl_LocalInvocationID.x] = sum;
  barrier();
  if (slice > 0 || c >= E.size[1]) return;
  sum = -pixels * integer_at(push.zero, kTypeX, 0);
  for (int i = 0; i < int(gl_WorkGroupSize.y); ++i) sum += sums[i][gl_LocalInvocationID.x];
  precise float divisor = float(pixels) * push.y_scale.v[0];
  const int y = requantized(sum, divided(push.scale.v[0], divisor), integer_at(push.y_zero, kTypeY, 0), push.range);
  put_integer(push.y, kTypeY, n * E.strides[1][0] + c * E.strides[1][1], y);
}
