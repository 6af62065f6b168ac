// Implicit GEMM of 8-bit integers: as gemm_tile.comp, with four neighbours along k in a word of shared memory. Both operands are
// taken as signed ones; sums of each row and column, kept aside, take the zero points off at the end:
//   sum of (x - x_zero) * (w - w_zero) = sum of x * w - x_zero * sum of w - w_zero * sum of x + k * x_zero * w_zero.
// build: integer_tile
// build: integer_tile_dot -DDOT
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_spirv_intrinsics : require
#include "buffers.glsl"
#include "integer_sums.glsl"

layout(constant_id = kM_id) const int kM = 64;  // of the workgroup's tile
layout(constant_id = kN_id) const int kN = 64;
layout(constant_id = kK_id) const int kK = 64;
layout(constant_id = kThreadM_id) const int kThreadM = 4;  // of a thread's part, in vec4s
layout(constant_id = kThreadN_id) const int kThreadN = 4;
layout(constant_id = kVectors_id) const bool kVectors = false;
layout(constant_id = kPacked_id) const bool kPacked = true;  // signed, [k / 4][n_padded] words
layout(constant_id = kStoreVectors_id) const bool kStoreVectors = false;
#include "gemm_taps.glsl"

const int kThreadsM = kM / kThreadM, kThreadsN = kN / kThreadN, kThreads = kThreadsM * kThreadsN;
const int kQuads = kK / 4;  // words along k
const int kLoadsX = kM * kQuads / kThreads, kLoadsW = kQuads * kN / 4 / kThreads;
const int kRow = kM + 32 / kQuads;  // of the left tile: what neighbouring threads write falls into different banks
shared int left[kQuads * kRow];
shared int right[kQuads * kN];
shared int row_sums[kM], column_sums[kN];

#ifdef DOT
#include "byte_dot.glsl"
int dot_of(int a, int b) { return signed_dot(a, b, 0); }
#else
int byte_of(int word, int i) { return bitfieldExtract(word, 8 * i, 8); }
int dot_of(int a, int b) {
  return byte_of(a, 0) * byte_of(b, 0) + byte_of(a, 1) * byte_of(b, 1) + byte_of(a, 2) * byte_of(b, 2) + byte_of(a, 3) * byte_of(b, 3);
}
#endif

const uint kFlipX = kTypeX == kU8 ? 0x80808080u : 0u, kFlipW = kTypeW == kU8 ? 0x80808080u : 0u;

// What a thread brings into the next tiles: words along k of some rows of x, four words at a time of columns of w; and their sums.
struct Next {
  WindowRow rows[kLoadsX];
  ivec4 tap;    // where the words of x begin
  int x_zero;   // less 128 where x is unsigned, as x itself
  int padding;  // four of them
  int x[kLoadsX], row_sum[kLoadsX];
  ivec4 w[kLoadsW], column_sum[kLoadsW];
};

// Setup: the rows that this thread loads, its first element of k, and sums of nothing.
void begin(out Next next, Instance at, int m0, int thread) {
  next.x_zero = zero_of_x() - (kTypeX == kU8 ? 128 : 0);
  next.padding = (next.x_zero & 255) * 0x01010101;
  for (int i = thread; i < kM; i += kThreads) row_sums[i] = 0;
  for (int i = thread; i < kN; i += kThreads) column_sums[i] = 0;
  [[unroll]] for (int i = 0; i < kLoadsX; ++i) {
    next.rows[i] = window_row(m0 + udiv(thread + i * kThreads, kQuads), at.x);
    next.row_sum[i] = 0;
  }
  [[unroll]] for (int i = 0; i < kLoadsW; ++i) next.column_sum[i] = ivec4(0);
  next.tap = tap_of(umod(thread, kQuads) * 4);
}

// Load: a word of a row of x; zeros beyond k...
int word_of_x(WindowRow row, ivec4 tap, int padding) {
  if (kVectors) {
    if (tap.x >= kFilterT) return 0;
    const ivec3 p = pixel_under(row, tap.xyz);
    if (in_padding(p)) return padding;
    return int(Words(push.x).v[(element_of(row, p) + tap.w) >> 2] ^ kFlipX);
  }
  int word = 0;
  [[unroll]] for (int i = 0; i < 4; ++i) {
    if (tap.x < kFilterT) {
      const ivec3 p = pixel_under(row, tap.xyz);
      int value = padding;
      if (!in_padding(p)) value = int(push.x.v[element_of(row, p) + tap.w * G.channel.x]) ^ int(kFlipX);
      word |= (value & 255) << 8 * i;
    }
    tap = next_tap(tap);
  }
  return word;
}
// ... and of four columns of w, the q-th along k...
ivec4 words_of_w(int q, int n, int weights) {
  if (kPacked) return ivec4(Words4(push.w).v[(weights + q * G.n_padded + n) >> 2]);
  ivec4 value = ivec4(0);
  for (int i = 0; i < 4; ++i) {
    const int k = 4 * q + i;
    if (k >= G.k) return value;
    const int at = weights + dot4(tap_within(k), G.w_strides);
    [[unroll]] for (int j = 0; j < 4; ++j)
      if (n + j < G.n) value[j] |= ((int(push.w.v[at + (n + j) * G.w_filter_stride]) ^ int(kFlipW)) & 255) << 8 * i;
  }
  return value;
}
// ... all of this thread for the tiles that begin at k, into registers...
void load(inout Next next, int thread, int k, int n0, int weights) {
  [[unroll]] for (int i = 0; i < kLoadsX; ++i) next.x[i] = word_of_x(next.rows[i], next.tap, next.padding);
  [[unroll]] for (int i = 0; i < kLoadsW; ++i) {
    const int at = (thread + i * kThreads) * 4;
    next.w[i] = words_of_w(udiv(k, 4) + udiv(at, kN), n0 + umod(at, kN), weights);
  }
}
// ... and from there into shared memory.
void put(inout Next next, int thread) {
  [[unroll]] for (int i = 0; i < kLoadsX; ++i) {
    left[umod(thread, kQuads) * kRow + udiv(thread + i * kThreads, kQuads)] = next.x[i];
    next.row_sum[i] += dot_of(next.x[i], 0x01010101);
  }
  [[unroll]] for (int i = 0; i < kLoadsW; ++i) {
    const int to = (thread + i * kThreads) * 4;
    [[unroll]] for (int j = 0; j < 4; ++j) {
      right[to + j] = next.w[i][j];
      next.column_sum[i][j] += dot_of(next.w[i][j], 0x01010101);
    }
  }
}

// A thread's rows and columns of the tile: groups of four lie a step of all threads apart, so that neighbours read neighbouring words.
int row_of(int tm, int i) { return i / 4 * (kThreadsM * 4) + tm * 4 + i % 4; }
int column_of(int tn, int j) { return j / 4 * (kThreadsN * 4) + tn * 4 + j % 4; }

// Multiply: a thread's part of the tiles, so many words along k.
void multiply(int quads, int tm, int tn, inout int sums[kThreadM][kThreadN]) {
  for (int q = 0; q < quads; ++q) {
    int a[kThreadM], b[kThreadN];
    [[unroll]] for (int i = 0; i < kThreadM; ++i) a[i] = left[q * kRow + row_of(tm, i)];
    [[unroll]] for (int j = 0; j < kThreadN; ++j) b[j] = right[q * kN + column_of(tn, j)];
#ifdef DOT
    [[unroll]] for (int i = 0; i < kThreadM; ++i)
      [[unroll]] for (int j = 0; j < kThreadN; ++j) sums[i][j] += dot_of(a[i], b[j]);
#else
    // Bytes are taken out of a word once for all its products.
    [[unroll]] for (int l = 0; l < 4; ++l) {
      int x[kThreadM], w[kThreadN];
      [[unroll]] for (int i = 0; i < kThreadM; ++i) x[i] = byte_of(a[i], l);
      [[unroll]] for (int j = 0; j < kThreadN; ++j) w[j] = byte_of(b[j], l);
      [[unroll]] for (int i = 0; i < kThreadM; ++i)
        [[unroll]] for (int j = 0; j < kThreadN; ++j) sums[i][j] += x[i] * w[j];
    }
#endif
  }
}

// Finish: sums of rows and columns from all threads, which take the zero points off; the epilogue, and out.
void add_line_sums(Next next, int thread) {
  [[unroll]] for (int i = 0; i < kLoadsX; ++i) atomicAdd(row_sums[udiv(thread + i * kThreads, kQuads)], next.row_sum[i]);
  [[unroll]] for (int i = 0; i < kLoadsW; ++i)
    [[unroll]] for (int j = 0; j < 4; ++j) atomicAdd(column_sums[(thread + i * kThreads) * 4 % kN + j], next.column_sum[i][j]);
}
void finish(Instance at, int x_zero, ivec2 origin, int tm, int tn, int sums[kThreadM][kThreadN]) {
  [[unroll]] for (int j = 0; j < kThreadN; j += 4) {
    const int column = column_of(tn, j), n = origin.y + column;
    if (n >= G.n) continue;
    ivec4 w_zero, offset;
    [[unroll]] for (int l = 0; l < 4; ++l) {
      w_zero[l] = zero_of_w(at.channel + min(n + l, G.n - 1)) - (kTypeW == kU8 ? 128 : 0);
      offset[l] = x_zero * (G.k * w_zero[l] - column_sums[column + l]);
    }
    [[unroll]] for (int i = 0; i < kThreadM; ++i) {
      const int row = row_of(tm, i), m = origin.x + row;
      if (m >= G.m) continue;
      const int to = at.y + dot4(pixel_of(m), G.y_strides);
      ivec4 value;
      [[unroll]] for (int l = 0; l < 4; ++l)
        value[l] = finished(sums[i][j + l] - w_zero[l] * row_sums[row] + offset[l], at.channel + min(n + l, G.n - 1));
      if (kStoreVectors) {
        if (kTypeY == kI32) {
          Words4(push.y).v[(to + n) >> 2] = uvec4(value);
        } else {
          Words(push.y).v[(to + n) >> 2] = packed(value);
        }
      } else {
        [[unroll]] for (int l = 0; l < 4; ++l)
          if (n + l < G.n) put_integer(push.y, kTypeY, to + (n + l) * G.channel.y, value[l]);
      }
    }
  }
}

void main() {
  const int thread = int(gl_LocalInvocationID.x), tm = udiv(thread, kThreadsN), tn = umod(thread, kThreadsN);
  const Instance at = instance_at(push.first_instance + int(gl_WorkGroupID.z));
  const ivec2 origin = tile_origin(kM, kN);
  if (origin.x >= G.m) return;
  const int weights = kPacked ? at.packed : at.w;
  Next next;
  begin(next, at, origin.x, thread);
  int sums[kThreadM][kThreadN];
  [[unroll]] for (int i = 0; i < kThreadM; ++i)
    [[unroll]] for (int j = 0; j < kThreadN; ++j) sums[i][j] = 0;

  load(next, thread, 0, origin.y, weights);
  for (int k = 0; k < G.k; k += kK) {
    put(next, thread);
    barrier();
    if (k + kK < G.k) {
      advance(next.tap, kK);
      load(next, thread, k + kK, origin.y, weights);
    }
    multiply(min(kQuads, (G.k - k + 3) / 4), tm, tn, sums);
    barrier();
  }
  add_line_sums(next, thread);
  barrier();
  finish(at, next.x_zero, origin, tm, tn, sums);
}
