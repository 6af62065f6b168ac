// Channels last: a thread makes kRows x kColumns outputs of four channels. It walks the rows of the input that these see, loads each
// pixel once, and multiplies it for all of its outputs.
// build: depthwise_vectors
// build: depthwise_vectors_half -DHALF
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "depthwise.glsl"

layout(constant_id = 8) const int kRows = 2;
layout(constant_id = 9) const int kColumns = 4;
layout(constant_id = 10) const bool kPacked = true;  // filters as [tap][filter]
layout(constant_id = 11) const int kFilterR = 3;
layout(constant_id = 12) const int kFilterS = 3;
layout(constant_id = 13) const int kStrideR = 1;
layout(constant_id = 14) const int kStrideS = 1;
layout(constant_id = 15) const int kDilationR = 1;
layout(constant_id = 16) const int kDilationS = 1;

const int kSpanR = (kRows - 1) * kStrideR + (kFilterR - 1) * kDilationR + 1;
const int kSpanS = (kColumns - 1) * kStrideS + (kFilterS - 1) * kDilationS + 1;

vec4 weight_at(int r, int s, int k) {
  if (kPacked) return vec4(Element4s(push.w).v[((r * kFilterS + s) * R.filters + k) >> 2]);
  const int at = k * R.w_strides.x + r * R.w_strides.z + s * R.w_strides.w;
  return vec4(push.w.v[at], push.w.v[at + R.w_strides.x], push.w.v[at + 2 * R.w_strides.x], push.w.v[at + 3 * R.w_strides.x]);
}

void main() {
  uint index = gl_GlobalInvocationID.x + gl_GlobalInvocationID.y * gl_NumWorkGroups.x * gl_WorkGroupSize.x;
  if (index >= R.count) return;
  const int k = 4 * int(fast_divmod(index, R.channels));
  ivec4 pixel;  // the tile's first
  pixel.w = int(fast_divmod(index, R.w)) * kColumns;
  pixel.z = int(fast_divmod(index, R.h)) * kRows;
  pixel.y = int(fast_divmod(index, R.d));
  pixel.x = int(index);
  const ivec3 origin = pixel.yzw * ivec3(R.stride.x, kStrideR, kStrideS) - R.pad.xyz;
  const bool inside = origin.x >= 0 && origin.x < R.x_size.y;
  const int from = pixel.x * R.x_strides.x + origin.x * R.x_strides.y + k;
  vec4 sums[kRows * kColumns];
  [[unroll]] for (int i = 0; i < kRows * kColumns; ++i) sums[i] = vec4(0.0);

  [[unroll]] for (int row = 0; row < kSpanR; ++row) {
    const int h = origin.y + row;
    vec4 x[kSpanS];
    [[unroll]] for (int column = 0; column < kSpanS; ++column) {
      const int w = origin.z + column;
      x[column] = inside && h >= 0 && h < R.x_size.z && w >= 0 && w < R.x_size.w
                      ? vec4(Element4s(push.x).v[(from + h * R.x_strides.z + w * R.x_strides.w) >> 2])
                      : vec4(0.0);
    }
    [[unroll]] for (int i = 0; i < kRows; ++i) {
      const int reach = row - i * kStrideR, r = reach / kDilationR;  // the tap of output row i that this row is for
      if (reach >= 0 && r * kDilationR == reach && r < kFilterR) {
        [[unroll]] for (int s = 0; s < kFilterS; ++s) {
          const vec4 weight = weight_at(r, s, k);
          [[unroll]] for (int j = 0; j < kColumns; ++j)
            sums[i * kColumns + j] = fma(weight, x[j * kStrideS + s * kDilationS], sums[i * kColumns + j]);
        }
      }
    }
  }

  [[unroll]] for (int i = 0; i < kRows; ++i) {
    [[unroll]] for (int j = 0; j < kColumns; ++j) {
      const ivec4 at = pixel + ivec4(0, 0, i, j);
      if (at.z >= R.y_size.z || at.w >= R.y_size.w) continue;
      vec4 value;
      [[unroll]] for (int l = 0; l < 4; ++l) value[l] = finished(sums[i * kColumns + j][l], at, k + l);
      Element4s(push.y).v[(dot4(at, R.y_strides) + k) >> 2] = ELEMENT4(value);
    }
  }
}
