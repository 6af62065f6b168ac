// Depthwise windows over 8-bit integers, channels last: four channels, which are a word, of kColumns neighbouring outputs a thread;
// each word of a row of the input is read once for all outputs and taps of that row.
// build: integer_depthwise
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "integer_sums.glsl"

layout(constant_id = kColumns_id) const int kColumns = 4;
layout(constant_id = kFilterS_id) const int kFilterS = 3;  // along w
layout(constant_id = kStrideS_id) const int kStrideS = 1;
layout(constant_id = kPacked_id) const bool kPacked = true;  // weights are packed: [tap][n] of 16 bits, two in a word

const int kSpan = (kColumns - 1) * kStrideS + kFilterS;

// Weights of four channels.
ivec4 weights_at(int tap, int r, int s, int n, int t) {
  if (kPacked) {
    const int at = (tap * G.n + n) >> 1;
    const int low = int(Words(push.w).v[at]), high = int(Words(push.w).v[at + 1]);
    return ivec4(bitfieldExtract(low, 0, 16), low >> 16, bitfieldExtract(high, 0, 16), high >> 16);
  }
  ivec4 w;
  [[unroll]] for (int l = 0; l < 4; ++l)
    w[l] = integer_at(push.w, kTypeW, (n + l) * G.w_filter_stride + t * G.w_strides.x + r * G.w_strides.y + s * G.w_strides.z);
  return w;
}

void main() {
  int index = int(gl_GlobalInvocationID.x + gl_GlobalInvocationID.y * gl_NumWorkGroups.x * gl_WorkGroupSize.x);
  const int quads = G.n / 4, blocks = (G.rows.w + kColumns - 1) / kColumns;
  const int n = index % quads * 4;
  index /= quads;
  const int column = index % blocks * kColumns;
  index /= blocks;
  const int h = index % G.rows.z;
  index /= G.rows.z;
  const int d = index % G.rows.y, image = index / G.rows.y;
  if (image >= G.rows.x) return;
  const ivec4 x_zero = ivec4(zero_of_x());
  ivec4 w_zero;
  [[unroll]] for (int l = 0; l < 4; ++l) w_zero[l] = zero_of_w(n + l);
  ivec4 sums[kColumns];
  [[unroll]] for (int i = 0; i < kColumns; ++i) sums[i] = ivec4(0);
  const int first = column * kStrideS - G.pad.z;
  for (int t = 0; t < G.filter_size.x; ++t) {
    const int from_d = d * G.stride.x - G.pad.x + t * G.dilation.x;
    if (from_d < 0 || from_d >= G.x_size.y) continue;
    for (int r = 0; r < G.filter_size.y; ++r) {
      const int from_h = h * G.stride.y - G.pad.y + r * G.dilation.y;
      if (from_h < 0 || from_h >= G.x_size.z) continue;
      const int row = image * G.x_strides.x + from_d * G.x_strides.y + from_h * G.x_strides.z + n;
      ivec4 x[kSpan];  // less their zero point
      [[unroll]] for (int i = 0; i < kSpan; ++i) {
        const int at = first + i;
        const bool inside = at >= 0 && at < G.x_size.w;
        x[i] = inside ? unpacked(Words(push.x).v[(row + at * G.x_strides.w) >> 2], kTypeX) - x_zero : ivec4(0);
      }
      [[unroll]] for (int s = 0; s < kFilterS; ++s) {
        const ivec4 w = weights_at((t * G.filter_size.y + r) * kFilterS + s, r, s, n, t) - w_zero;
        [[unroll]] for (int i = 0; i < kColumns; ++i) sums[i] += x[i * kStrideS + s] * w;
      }
    }
  }
  const int to = image * G.y_strides.x + d * G.y_strides.y + h * G.y_strides.z + n;
  [[unroll]] for (int i = 0; i < kColumns; ++i) {
    if (column + i >= G.rows.w) return;
    ivec4 value;
    [[unroll]] for (int l = 0; l < 4; ++l) value[l] = finished(sums[i][l], n + l);
    const int at = (to + (column + i) * G.y_strides.w) >> 2;
    if (kTypeY == kI32) {
      Words4(push.y).v[at] = uvec4(value);
    } else {
      Words(push.y).v[at] = packed(value);
    }
  }
}
