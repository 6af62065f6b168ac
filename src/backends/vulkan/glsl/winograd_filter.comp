// Weights at the points of Winograd's tiles, for filters that are no constants: a thread per channel and filter, with the places
// beyond both as zeros.
// build: winograd_filter
// build: winograd_filter_half -DHALF
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "gemm.glsl"
#include "winograd.glsl"

// The three taps of a line at its points (winograd_transform()).
void filter_line(float a, float b, float c, out float points[6]) {
  if (kTile == 2) {
    points[0] = -a, points[1] = 0.5 * (a + b + c), points[2] = 0.5 * (a - b + c), points[3] = c;
  } else {
    const float odd = 0.70710678118654752 * b, odd2 = 1.41421356237309505 * b;
    points[0] = a;
    points[1] = (-2.0 / 3.0) * (a + odd + 0.5 * c), points[2] = (-2.0 / 3.0) * (a - odd + 0.5 * c);
    points[3] = (1.0 / 6.0) * (a + odd2 + 2.0 * c), points[4] = (1.0 / 6.0) * (a - odd2 + 2.0 * c);
    points[5] = c;
  }
}

// y: [point][c_padded][n_padded], in f32; the push constant `steps` is c_padded.
void main() {
  const int index = int(gl_GlobalInvocationID.x + gl_GlobalInvocationID.y * gl_NumWorkGroups.x * gl_WorkGroupSize.x);
  const int matrix = push.steps * G.n_padded;
  if (index >= matrix) return;
  const int k = index % G.n_padded, c = index / G.n_padded, from = k * G.w_filter_stride + c * G.w_strides.w;
  const bool there = k < G.n && c < G.filter_size.w;
  float taps[3][3], rows[3][6];
  [[unroll]] for (int r = 0; r < 3; ++r)
    [[unroll]] for (int s = 0; s < 3; ++s) taps[r][s] = there ? float(push.w.v[from + r * G.w_strides.y + s * G.w_strides.z]) : 0.0;
  [[unroll]] for (int r = 0; r < 3; ++r) filter_line(taps[r][0], taps[r][1], taps[r][2], rows[r]);
  [[unroll]] for (int j = 0; j < kPoints; ++j) {
    float column[6];
    filter_line(rows[0][j], rows[1][j], rows[2][j], column);
    [[unroll]] for (int i = 0; i < kPoints; ++i) Floats(push.y).v[(i * kPoints + j) * matrix + index] = column[i];
  }
}
