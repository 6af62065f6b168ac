// Implicit GEMM: a workgroup makes a tile of outputs from tiles of both operands in shared memory; the next tiles are on their
// way while these are multiplied. Rows of the left operand are gathered through the window, padding counts as zero. Complex
// numbers are two columns of x, y and w; a row of w serves both columns of x. gemm_tile_short.comp has sums of fp16 values.
// build: gemm_tile
// build: gemm_tile_half -DHALF
// build: gemm_tile_complex -DCOMPLEX
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "gemm.glsl"
#include "gemm_work.glsl"

layout(constant_id = kM_id) const int kM = 64;  // of the workgroup's tile
layout(constant_id = kN_id) const int kN = 64;
layout(constant_id = kK_id) const int kK = 16;
layout(constant_id = kThreadM_id) const int kThreadM = 4;  // of a thread's part, in vec4s
layout(constant_id = kThreadN_id) const int kThreadN = 4;
layout(constant_id = kPad_id) const int kPad = 4;  // words between the lines of the left tile
layout(constant_id = kUnroll_id) const int kUnroll = 4;
// Off for `bench --ablate` alone.
layout(constant_id = kAhead_id) const bool kAhead = true;
layout(constant_id = kVec4_id) const bool kVec4 = true;

const int kThreadsM = kM / kThreadM, kThreadsN = kN / kThreadN, kThreads = kThreadsM * kThreadsN;
const int kQuads = kK / 4;                                                     // vec4s along k
const int kLoadsA = kM * kQuads / kThreads, kLoadsB = kK * kN / 4 / kThreads;  // vec4s that a thread loads
const int kLineA = kM + kPad;
shared float left[kK * kLineA];  // [k][m]
shared float right[kK * kN];     // [k][n]

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

// Load: four columns of row k of w...
vec4 columns_of_w(int k, int n, int weights) {
#ifdef COMPLEX
  const vec4 w = Vec4s(push.w).v[(weights + k / 2 * G.n_padded + n) >> 2];
  return k % 2 == 0 ? w : vec4(-w.y, w.x, -w.w, w.z);  // times i
#else
  if (!kPacked) return four_of_w(k, n, weights);
  const int from = weights + k * G.n_padded + n;
  if (kVec4) return vec4(Element4s(push.w).v[from >> 2]);
  return vec4(push.w.v[from], push.w.v[from + 1], push.w.v[from + 2], push.w.v[from + 3]);
#endif
}
// ... all of this thread for the tiles that begin at k, into registers...
void load(inout Next next, Work work, int thread, int k) {
  [[unroll]] for (int i = 0; i < kLoadsA; ++i) next.a[i] = four_of_x(next.rows[i], next.tap);
  [[unroll]] for (int i = 0; i < kLoadsB; ++i) {
    const int at = (thread + i * kThreads) * 4;
    next.b[i] = columns_of_w(k + udiv(at, kN), work.n0 + umod(at, kN), work.weights);
  }
}
// ... and from there into shared memory.
void put(Next next, int thread) {
  [[unroll]] for (int i = 0; i < kLoadsA; ++i) {
    const int to = umod(thread, kQuads) * 4 * kLineA + udiv(thread + i * kThreads, kQuads);
    [[unroll]] for (int j = 0; j < 4; ++j) left[to + j * kLineA] = next.a[i][j];
  }
  [[unroll]] for (int i = 0; i < kLoadsB; ++i)
    [[unroll]] for (int j = 0; j < 4; ++j) right[(thread + i * kThreads) * 4 + j] = next.b[i][j];
}

// A thread's rows and columns of the tile: vec4s lie a step of all threads apart, so that neighbours read neighbouring words.
int row_of(int tm, int i) { return i / 4 * (kThreadsM * 4) + tm * 4 + i % 4; }
int column_of(int tn, int j) { return j / 4 * (kThreadsN * 4) + tn * 4 + j % 4; }

// Multiply: a thread's part of the tiles.
void multiply(int tm, int tn, inout float sums[kThreadM][kThreadN]) {
  for (int k1 = 0; k1 < kK; k1 += kUnroll)
    [[unroll]] for (int k2 = 0; k2 < kUnroll; ++k2) {
      const int k = k1 + k2;
      float a[kThreadM], b[kThreadN];
      [[unroll]] for (int i = 0; i < kThreadM; ++i) a[i] = left[k * kLineA + row_of(tm, i)];
      [[unroll]] for (int j = 0; j < kThreadN; ++j) b[j] = right[k * kN + column_of(tn, j)];
      [[unroll]] for (int i = 0; i < kThreadM; ++i)
        [[unroll]] for (int j = 0; j < kThreadN; ++j) sums[i][j] = fma(a[i], b[j], sums[i][j]);
    }
}

// Finish: the epilogue, or sums as they are, and out.
void finish(Work work, int tm, int tn, float sums[kThreadM][kThreadN]) {
  [[unroll]] for (int i = 0; i < kThreadM; ++i) {
    const int m = work.m0 + row_of(tm, i);
    if (m >= G.m) continue;
    const RowOfY row = row_of_y(m, work);
    [[unroll]] for (int j = 0; j < kThreadN; j += 4)
      store_vec4(row, work, work.n0 + column_of(tn, j), vec4(sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]));
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
