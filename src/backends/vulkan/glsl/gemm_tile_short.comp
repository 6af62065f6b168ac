// Implicit GEMM with sums of fp16 values: as gemm_tile.comp, but the tiles are fp16 values, and products of kUnroll steps are added in
// f16, two columns at once, before they go into sums of f32. Packed weights are fp16 values whatever x is.
// build: gemm_tile_short
// build: gemm_tile_short_half -DHALF
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "buffers.glsl"
#include "gemm.glsl"
#include "gemm_work.glsl"

layout(constant_id = kM_id) const int kM = 64;  // of the workgroup's tile
layout(constant_id = kN_id) const int kN = 64;
layout(constant_id = kK_id) const int kK = 16;
layout(constant_id = kThreadM_id) const int kThreadM = 4;  // of a thread's part, in vec4s
layout(constant_id = kThreadN_id) const int kThreadN = 4;
layout(constant_id = kPad_id) const int kPad = 4;  // fp16 values between the lines of the left tile
layout(constant_id = kUnroll_id) const int kUnroll = 4;
layout(constant_id = kAhead_id) const bool kAhead = true;  // off for `bench --ablate` alone

const int kThreadsM = kM / kThreadM, kThreadsN = kN / kThreadN, kThreads = kThreadsM * kThreadsN;
const int kQuads = kK / 4;                                                     // vec4s along k
const int kLoadsA = kM * kQuads / kThreads, kLoadsB = kK * kN / 4 / kThreads;  // vec4s that a thread loads
const int kLineA = kM + kPad;
shared float16_t left[kK * kLineA];  // [k][m]
shared f16vec2 right[kK * kN / 2];   // [k][n]
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Weights { f16vec4 v[]; };

// What a thread brings into the next tiles: vec4s along k of some rows of x, and of columns of w.
struct Next {
  WindowRow rows[kLoadsA];
  ivec4 tap;  // where the vec4s of x begin
  vec4 a[kLoadsA], b[kLoadsB];
};

// Setup: the rows that this thread loads, and its first element of k.
void begin(out Next next, Work work, int thread) {
  [[unroll]] for (int i = 0; i < kLoadsA; ++i)
    next.rows[i] = window_row(work.m0 + udiv(thread + i * kThreads, kQuads), work.at.x);
  next.tap = tap_of(work.first + umod(thread, kQuads) * 4);
}

// Load: all vec4s of this thread for the tiles that begin at k, into registers...
void load(inout Next next, Work work, int thread, int k) {
  [[unroll]] for (int i = 0; i < kLoadsA; ++i) next.a[i] = four_of_x(next.rows[i], next.tap);
  [[unroll]] for (int i = 0; i < kLoadsB; ++i) {
    const int at = (thread + i * kThreads) * 4, row = k + udiv(at, kN), n = work.n0 + umod(at, kN);
    if (kPacked) next.b[i] = vec4(Weights(push.w).v[(work.weights + row * G.n_padded + n) >> 2]);
    else next.b[i] = four_of_w(row, n, work.weights);
  }
}
// ... and from there into shared memory, rounded.
void put(Next next, int thread) {
  [[unroll]] for (int i = 0; i < kLoadsA; ++i) {
    const int to = umod(thread, kQuads) * 4 * kLineA + udiv(thread + i * kThreads, kQuads);
    [[unroll]] for (int j = 0; j < 4; ++j) left[to + j * kLineA] = float16_t(next.a[i][j]);
  }
  [[unroll]] for (int i = 0; i < kLoadsB; ++i) {
    const int to = (thread + i * kThreads) * 2;
    right[to] = f16vec2(next.b[i].xy), right[to + 1] = f16vec2(next.b[i].zw);
  }
}

// A thread's rows and pairs of columns of the tile: vec4s lie a step of all threads apart, so that neighbours read neighbouring
// words.
int row_of(int tm, int i) { return i / 4 * (kThreadsM * 4) + tm * 4 + i % 4; }
int pair_of(int tn, int j) { return j / 2 * (kThreadsN * 2) + tn * 2 + j % 2; }

// Multiply: a thread's part of the tiles.
void multiply(int tm, int tn, inout float sums[kThreadM][kThreadN]) {
  for (int k1 = 0; k1 < kK; k1 += kUnroll) {
    f16vec2 few[kThreadM][kThreadN / 2];
    [[unroll]] for (int k2 = 0; k2 < kUnroll; ++k2) {
      const int k = k1 + k2;
      float16_t a[kThreadM];
      f16vec2 b[kThreadN / 2];
      [[unroll]] for (int i = 0; i < kThreadM; ++i) a[i] = left[k * kLineA + row_of(tm, i)];
      [[unroll]] for (int j = 0; j < kThreadN / 2; ++j) b[j] = right[k * kN / 2 + pair_of(tn, j)];
      [[unroll]] for (int i = 0; i < kThreadM; ++i)
        [[unroll]] for (int j = 0; j < kThreadN / 2; ++j)
          few[i][j] = k2 == 0 ? f16vec2(a[i]) * b[j] : fma(f16vec2(a[i]), b[j], few[i][j]);
    }
    [[unroll]] for (int i = 0; i < kThreadM; ++i)
      [[unroll]] for (int j = 0; j < kThreadN; ++j) sums[i][j] += float(few[i][j / 2][j % 2]);
  }
}

// Finish: the epilogue, or sums as they are, and out.
void finish(Work work, int tm, int tn, float sums[kThreadM][kThreadN]) {
  [[unroll]] for (int i = 0; i < kThreadM; ++i) {
    const int m = work.m0 + row_of(tm, i);
    if (m >= G.m) continue;
    const RowOfY row = row_of_y(m, work);
    [[unroll]] for (int j = 0; j < kThreadN; j += 4)
      store_vec4(row, work, work.n0 + 2 * pair_of(tn, j / 2),
                 vec4(sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]));
  }
}

void main() {
  const int thread = int(gl_LocalInvocationID.x), tm = udiv(thread, kThreadsN), tn = umod(thread, kThreadsN);
  const Work work = work_of_group(kM, kN);
  if (work.m0 >= G.m) return;
  Next next;
  begin(next, work, thread);
  float sums[kThreadM][kThreadN];
  [[unroll]] for (int i = 0; i < kThreadM; ++i)
    [[unroll]] for (int j = 0; j < kThreadN; ++j) sums[i][j] = 0.0;

  if (kAhead) load(next, work, thread, work.first);
  for (int k = work.first; k < work.last; k += kK) {
    if (!kAhead) {
      if (k > work.first) advance(next.tap, kK);
      load(next, work, thread, k);
    }
    put(next, thread);
    barrier();
    if (kAhead && k + kK < work.last) {
      advance(next.tap, kK);
      load(next, work, thread, k + kK);
    }
    multiply(tm, tn, sums);
    barrier();
  }
  finish(work, tm, tn, sums);
}
