// Implicit GEMM: a workgroup makes a tile of outputs from tiles of both operands in shared memory; the next tiles are on their
// way while these are multiplied. Rows of the left operand are gathered through the window, padding counts as zero.
// build: gemm_tile
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "gemm.glsl"

layout(constant_id = 8) const int kM = 64;  // of the workgroup's tile
layout(constant_id = 9) const int kN = 64;
layout(constant_id = 10) const int kK = 16;
layout(constant_id = 11) const int kThreadM = 4;  // of a thread's part, in fours
layout(constant_id = 12) const int kThreadN = 4;
layout(constant_id = 13) const bool kVectors = false;  // four channels at once: their number and all pitches are multiples of 4
layout(constant_id = 14) const bool kPacked = true;    // the right operand is packed: [k][n_padded], zeros beyond k and n
layout(constant_id = 15) const bool kStoreVectors = false;
layout(constant_id = 16) const int kFilterT = 1;
layout(constant_id = 17) const int kFilterR = 1;
layout(constant_id = 18) const int kFilterS = 1;
layout(constant_id = 19) const int kStrideT = 1;
layout(constant_id = 20) const int kStrideR = 1;
layout(constant_id = 21) const int kStrideS = 1;

const int kThreadsM = kM / kThreadM, kThreadsN = kN / kThreadN, kThreads = kThreadsM * kThreadsN;
const int kQuads = kK / 4;                             // loads of four along k
const int kLoadsA = kM * kQuads / kThreads, kLoadsB = kK * kN / 4 / kThreads;
const int kRowA = kM + 4;  // a row of the left tile, and what keeps its columns in different banks
shared float left[kK * kRowA];
shared float right[kK * kN];

vec4 next_a[kLoadsA];
vec4 next_b[kLoadsB];
// Where this thread's rows lie: their pixel's first tap.
int row_from[kLoadsA];
ivec3 row_at[kLoadsA];
// The tap and channel of this thread's quad.
int tap_t, tap_r, tap_s, tap_c;

void seek(int k) {
  tap_c = k % G.filter_size.w;
  k /= G.filter_size.w;
  tap_s = k % kFilterS;
  k /= kFilterS;
  tap_r = k % kFilterR;
  tap_t = k / kFilterR;
}
void advance() {
  tap_c += kK;
  while (tap_c >= G.filter_size.w) {
    tap_c -= G.filter_size.w;
    if (++tap_s == kFilterS) {
      tap_s = 0;
      if (++tap_r == kFilterR) {
        tap_r = 0;
        ++tap_t;
      }
    }
  }
}
// One element of the left operand, or zero.
float element(int load, int t, int r, int s, int c) {
  const ivec3 p = row_at[load] + ivec3(t, r, s) * G.dilation.xyz;
  if (t >= kFilterT || any(lessThan(p, ivec3(0))) || any(greaterThanEqual(p, G.x_size.yzw))) return 0.0;
  return push.x.v[row_from[load] + p.x * G.x_pitch.y + p.y * G.x_pitch.z + p.z * G.x_pitch.w + c * G.channel.x];
}
vec4 load_a(int load) {
  if (kVectors) {
    const ivec3 p = row_at[load] + ivec3(tap_t, tap_r, tap_s) * G.dilation.xyz;
    if (tap_t >= kFilterT || any(lessThan(p, ivec3(0))) || any(greaterThanEqual(p, G.x_size.yzw))) return vec4(0.0);
    const int from = row_from[load] + p.x * G.x_pitch.y + p.y * G.x_pitch.z + p.z * G.x_pitch.w + tap_c;
    return Vec4s(push.x).v[from >> 2];
  }
  vec4 value;
  int t = tap_t, r = tap_r, s = tap_s, c = tap_c;
  [[unroll]] for (int i = 0; i < 4; ++i) {
    value[i] = element(load, t, r, s, c);
    if (++c == G.filter_size.w) {
      c = 0;
      if (++s == kFilterS) {
        s = 0;
        if (++r == kFilterR) {
          r = 0;
          ++t;
        }
      }
    }
  }
  return value;
}
vec4 load_b(int k, int n, int from) {
  if (kPacked) return Vec4s(push.w).v[(from + k * G.n_padded + n) >> 2];
  vec4 value = vec4(0.0);
  if (k >= G.k) return value;
  const int c = k % G.filter_size.w, tap = k / G.filter_size.w;
  const int s = tap % kFilterS, r = tap / kFilterS % kFilterR, t = tap / (kFilterS * kFilterR);
  from += c * G.w_pitch.y + t * G.w_pitch.z + r * G.w_pitch.w + s * G.w_pitch_more.x;
  [[unroll]] for (int i = 0; i < 4; ++i)
    if (n + i < G.n) value[i] = push.w.v[from + (n + i) * G.w_pitch.x];
  return value;
}

void main() {
  const int thread = int(gl_LocalInvocationID.x);
  const Instance at = instance_at(push.first_instance + int(gl_WorkGroupID.z));
  const int m0 = int(gl_WorkGroupID.y) * kM, n0 = int(gl_WorkGroupID.x) * kN;
  const int quad = thread % kQuads;
  [[unroll]] for (int i = 0; i < kLoadsA; ++i) {
    const int m = m0 + (thread + i * kThreads) / kQuads;
    const ivec4 pixel = pixel_of(min(m, G.m - 1));
    row_from[i] = at.x + pixel.x * G.x_pitch.x;
    row_at[i] = pixel.yzw * ivec3(kStrideT, kStrideR, kStrideS) - G.pad.xyz;
  }
  seek(quad * 4);
  const int weights = kPacked ? at.packed : at.w;
  const int tm = thread / kThreadsN, tn = thread % kThreadsN;
  float sums[kThreadM][kThreadN];
  [[unroll]] for (int i = 0; i < kThreadM; ++i)
    [[unroll]] for (int j = 0; j < kThreadN; ++j) sums[i][j] = 0.0;

  [[unroll]] for (int i = 0; i < kLoadsA; ++i) next_a[i] = load_a(i);
  [[unroll]] for (int i = 0; i < kLoadsB; ++i) {
    const int at_b = (thread + i * kThreads) * 4;
    next_b[i] = load_b(at_b / kN, n0 + at_b % kN, weights);
  }
  for (int k0 = 0; k0 < G.k; k0 += kK) {
    [[unroll]] for (int i = 0; i < kLoadsA; ++i) {
      const int row = (thread + i * kThreads) / kQuads;
      [[unroll]] for (int j = 0; j < 4; ++j) left[(quad * 4 + j) * kRowA + row] = next_a[i][j];
    }
    [[unroll]] for (int i = 0; i < kLoadsB; ++i) {
      const int to = (thread + i * kThreads) * 4;
      [[unroll]] for (int j = 0; j < 4; ++j) right[to + j] = next_b[i][j];
    }
    barrier();
    if (k0 + kK < G.k) {
      advance();
      [[unroll]] for (int i = 0; i < kLoadsA; ++i) next_a[i] = load_a(i);
      [[unroll]] for (int i = 0; i < kLoadsB; ++i) {
        const int at_b = (thread + i * kThreads) * 4;
        next_b[i] = load_b(k0 + kK + at_b / kN, n0 + at_b % kN, weights);
      }
    }
    // Fours of rows and columns lie a step of all threads apart, so that neighbours read neighbouring words.
    for (int k = 0; k < kK; ++k) {
      float a[kThreadM], b[kThreadN];
      [[unroll]] for (int i = 0; i < kThreadM; ++i) a[i] = left[k * kRowA + i / 4 * (kThreadsM * 4) + tm * 4 + i % 4];
      [[unroll]] for (int j = 0; j < kThreadN; ++j) b[j] = right[k * kN + j / 4 * (kThreadsN * 4) + tn * 4 + j % 4];
      [[unroll]] for (int i = 0; i < kThreadM; ++i)
        [[unroll]] for (int j = 0; j < kThreadN; ++j) sums[i][j] = fma(a[i], b[j], sums[i][j]);
    }
    barrier();
  }

  [[unroll]] for (int i = 0; i < kThreadM; ++i) {
    const int m = m0 + i / 4 * (kThreadsM * 4) + tm * 4 + i % 4;
    if (m >= G.m) continue;
    const ivec4 pixel = pixel_of(m);
    const int to = at.y + dot4(pixel, G.y_pitch);
    [[unroll]] for (int j = 0; j < kThreadN; j += 4) {
      const int n = n0 + j / 4 * (kThreadsN * 4) + tn * 4;
      if (kStoreVectors) {
        if (n >= G.n) continue;
        vec4 value;
        [[unroll]] for (int l = 0; l < 4; ++l) value[l] = finished(sums[i][j + l], at, pixel, n + l);
        Vec4s(push.y).v[(to + n) >> 2] = value;
      } else {
        [[unroll]] for (int l = 0; l < 4; ++l)
          if (n + l < G.n) push.y.v[to + (n + l) * G.channel.y] = finished(sums[i][j + l], at, pixel, n + l);
      }
    }
  }
}
