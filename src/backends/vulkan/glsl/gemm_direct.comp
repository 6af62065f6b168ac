// Products without shared memory: a thread makes kThreadM x kThreadN neighbouring outputs, and reads four channels at once where
// they lie side by side. Two optimisation steps: one output by loads of 16 bytes, and several outputs.
// build: gemm_direct
// build: gemm_direct_half -DHALF
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "gemm.glsl"

layout(constant_id = kM_id) const int kM = 64;  // of the workgroup's tile
layout(constant_id = kN_id) const int kN = 4;
layout(constant_id = kThreadM_id) const int kThreadM = 1;
layout(constant_id = kThreadN_id) const int kThreadN = 1;
layout(constant_id = kVectors_id) const bool kVectors = false;
layout(constant_id = kPacked_id) const bool kPacked = true;

const int kThreadsN = kN / kThreadN;

// Filters n.. of the right operand at a tap and channel.
void load_filters(Instance at, int tap, int tap_from, int c, int n, out float w[kThreadN]) {
  if (kPacked) {
    const int from = at.packed + (tap * G.filter_size.w + c) * G.n_padded + n;
    if (kThreadN == 4) {
      const vec4 four = vec4(Element4s(push.w).v[from >> 2]);
      [[unroll]] for (int j = 0; j < kThreadN; ++j) w[j] = four[j];
    } else {
      [[unroll]] for (int j = 0; j < kThreadN; ++j) w[j] = float(push.w.v[from + j]);
    }
  } else {
    [[unroll]] for (int j = 0; j < kThreadN; ++j)
      w[j] = float(push.w.v[tap_from + c * G.w_strides.w + min(n + j, G.n - 1) * G.w_filter_stride]);
  }
}

void main() {
  const int thread = int(gl_LocalInvocationID.x);
  const Instance at = instance_at(push.first_instance + int(gl_WorkGroupID.z));
  const ivec2 origin = tile_origin(kM, kN);
  const int m0 = origin.x + thread / kThreadsN * kThreadM, n0 = origin.y + thread % kThreadsN * kThreadN;
  if (m0 >= G.m || n0 >= G.n) return;
  ivec4 pixels[kThreadM];
  [[unroll]] for (int i = 0; i < kThreadM; ++i) pixels[i] = pixel_of(min(m0 + i, G.m - 1));
  float sums[kThreadM][kThreadN];
  [[unroll]] for (int i = 0; i < kThreadM; ++i)
    [[unroll]] for (int j = 0; j < kThreadN; ++j) sums[i][j] = 0.0;

  int tap = 0;
  for (int t = 0; t < G.filter_size.x; ++t)
    for (int r = 0; r < G.filter_size.y; ++r)
      for (int s = 0; s < G.filter_size.z; ++s, ++tap) {
        const int tap_from = at.w + t * G.w_strides.x + r * G.w_strides.y + s * G.w_strides.z;
        int from[kThreadM];
        [[unroll]] for (int i = 0; i < kThreadM; ++i) {
          const ivec3 p = pixels[i].yzw * G.stride.xyz - G.pad.xyz + ivec3(t, r, s) * G.dilation.xyz;
          const bool inside = all(greaterThanEqual(p, ivec3(0))) && all(lessThan(p, G.x_size.yzw));
          from[i] = inside ? at.x + dot4(ivec4(pixels[i].x, p), G.x_strides) : -1;
        }
        const int step = kVectors ? 4 : 1;
        for (int c = 0; c < G.filter_size.w; c += step) {
          vec4 x[kThreadM];
          [[unroll]] for (int i = 0; i < kThreadM; ++i) {
            x[i] = vec4(0.0);
            if (from[i] < 0) continue;
            if (kVectors) x[i] = vec4(Element4s(push.x).v[(from[i] + c) >> 2]);
            else x[i].x = float(push.x.v[from[i] + c * G.channel.x]);
          }
          [[unroll]] for (int l = 0; l < step; ++l) {
            float w[kThreadN];
            load_filters(at, tap, tap_from, c + l, n0, w);
            [[unroll]] for (int i = 0; i < kThreadM; ++i)
              [[unroll]] for (int j = 0; j < kThreadN; ++j) sums[i][j] = fma(x[i][l], w[j], sums[i][j]);
          }
        }
      }
  [[unroll]] for (int i = 0; i < kThreadM; ++i)
    [[unroll]] for (int j = 0; j < kThreadN; ++j)
      if (m0 + i < G.m && n0 + j < G.n)
        push.y.v[at.y + dot4(pixels[i], G.y_strides) + (n0 + j) * G.channel.y] =
            ELEMENT(finished(sums[i][j], at, pixels[i], n0 + j));
}
