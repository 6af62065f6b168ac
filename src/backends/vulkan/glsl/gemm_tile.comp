// Implicit GEMM: a workgroup makes a tile of outputs from tiles of both operands in shared memory; the next tiles are on their
// way while these are multiplied. Rows of the left operand are gathered through the window, padding counts as zero. Complex
// numbers are two columns of x, y and w; a row of w serves both columns of x. With SHORT the tiles are halves, and products of
// kUnroll steps are added in f16, two columns at once, before they go into sums of f32.
// build: gemm_tile
// build: gemm_tile_half -DHALF
// build: gemm_tile_complex -DCOMPLEX
// build: gemm_tile_short -DSHORT
// build: gemm_tile_short_half -DSHORT -DHALF
#version 460
#extension GL_GOOGLE_include_directive : require
#ifdef SHORT
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#endif
#include "buffers.glsl"
#include "gemm.glsl"

layout(constant_id = kM_id) const int kM = 64;  // of the workgroup's tile
layout(constant_id = kN_id) const int kN = 64;
layout(constant_id = kK_id) const int kK = 16;
layout(constant_id = kThreadM_id) const int kThreadM = 4;  // of a thread's part, in fours
layout(constant_id = kThreadN_id) const int kThreadN = 4;
layout(constant_id = kPad_id) const int kPad = 4;  // words between the columns of the left tile, which keep them in different banks
layout(constant_id = kUnroll_id) const int kUnroll = 4;
layout(constant_id = kPartial_id) const bool kPartial = false;  // sums of a part go out as they are: [part][instance][m][n_padded]
// Off for `bench --ablate` alone: the next tiles are loaded while these are multiplied; weights are loaded four at a time.
layout(constant_id = kAhead_id) const bool kAhead = true;
layout(constant_id = kFours_id) const bool kFours = true;

const int kThreadsM = kM / kThreadM, kThreadsN = kN / kThreadN, kThreads = kThreadsM * kThreadsN;
const int kLoad = 4, kQuads = kK / kLoad;              // loads along k
const int kLoadsA = kM * kQuads / kThreads, kLoadsB = kK * kN / 4 / kThreads;
const int kRowA = kM + kPad;
#ifdef SHORT
shared float16_t left[kK * kRowA];
shared f16vec2 right[kK * kN / 2];
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Weights { f16vec4 v[]; };
#define LEFT float16_t
#else
shared float left[kK * kRowA];
shared float right[kK * kN];
#define Weights Element4s
#define LEFT float
#endif

#include "gemm_gather.glsl"
#include "gemm_store.glsl"

vec4 next_b[kLoadsB];
void load_columns(int thread, int k, int n0, int from) {
  [[unroll]] for (int i = 0; i < kLoadsB; ++i) {
    const int at = (thread + i * kThreads) * 4, row = k + over(at, kN), n = n0 + rest(at, kN);
#ifdef COMPLEX
    const vec4 w = Vec4s(push.w).v[(from + row / 2 * G.n_padded + n) >> 2];
    next_b[i] = row % 2 == 0 ? w : vec4(-w.y, w.x, -w.w, w.z);  // times i
#else
    if (kPacked && !kFours) {
      [[unroll]] for (int j = 0; j < 4; ++j) next_b[i][j] = float(push.w.v[from + row * G.n_padded + n + j]);
    } else {
      next_b[i] = kPacked ? vec4(Weights(push.w).v[(from + row * G.n_padded + n) >> 2]) : load_b(row, n, from);
    }
#endif
  }
}

void main() {
  const int thread = int(gl_LocalInvocationID.x), quad = rest(thread, kQuads);
  const int index = instance_index(), part = part_index();
  const Instance at = instance_at(index);
  const ivec2 origin = tile_origin(kM, kN);
  const int m0 = origin.x, n0 = origin.y;
  if (m0 >= G.m) return;
  const int first = part * push.steps, last = min(G.k, first + push.steps);
  const int weights = kPacked ? at.packed : at.w;
  const int tm = over(thread, kThreadsN), tn = rest(thread, kThreadsN);
  begin_rows(thread, at, m0, first);
  float sums[kThreadM][kThreadN];
  [[unroll]] for (int i = 0; i < kThreadM; ++i)
    [[unroll]] for (int j = 0; j < kThreadN; ++j) sums[i][j] = 0.0;

  if (kAhead) {
    load_rows();
    load_columns(thread, first, n0, weights);
  }
  for (int k0 = first; k0 < last; k0 += kK) {
    if (!kAhead) {
      if (k0 > first) advance();
      load_rows();
      load_columns(thread, k0, n0, weights);
    }
    [[unroll]] for (int i = 0; i < kLoadsA; ++i) {
      const int row = over(thread + i * kThreads, kQuads);
      [[unroll]] for (int j = 0; j < 4; ++j) left[(quad * 4 + j) * kRowA + row] = LEFT(next_a[i][j]);
    }
    [[unroll]] for (int i = 0; i < kLoadsB; ++i) {
      const int to = (thread + i * kThreads) * 4;
#ifdef SHORT
      right[to / 2] = f16vec2(next_b[i].xy), right[to / 2 + 1] = f16vec2(next_b[i].zw);
#else
      [[unroll]] for (int j = 0; j < 4; ++j) right[to + j] = next_b[i][j];
#endif
    }
    barrier();
    if (kAhead && k0 + kK < last) {
      advance();
      load_rows();
      load_columns(thread, k0 + kK, n0, weights);
    }
    // Fours of rows and columns lie a step of all threads apart, so that neighbours read neighbouring words.
    for (int k1 = 0; k1 < kK; k1 += kUnroll) {
#ifdef SHORT
      f16vec2 few[kThreadM][kThreadN / 2];
      [[unroll]] for (int k2 = 0; k2 < kUnroll; ++k2) {
        const int k = k1 + k2;
        float16_t a[kThreadM];
        f16vec2 b[kThreadN / 2];
        [[unroll]] for (int i = 0; i < kThreadM; ++i) a[i] = left[k * kRowA + i / 4 * (kThreadsM * 4) + tm * 4 + i % 4];
        [[unroll]] for (int j = 0; j < kThreadN / 2; ++j) b[j] = right[(k * kN + j / 2 * (kThreadsN * 4) + tn * 4) / 2 + j % 2];
        [[unroll]] for (int i = 0; i < kThreadM; ++i)
          [[unroll]] for (int j = 0; j < kThreadN / 2; ++j)
            few[i][j] = k2 == 0 ? f16vec2(a[i]) * b[j] : fma(f16vec2(a[i]), b[j], few[i][j]);
      }
      [[unroll]] for (int i = 0; i < kThreadM; ++i)
        [[unroll]] for (int j = 0; j < kThreadN; ++j) sums[i][j] += float(few[i][j / 2][j % 2]);
#else
      [[unroll]] for (int k2 = 0; k2 < kUnroll; ++k2) {
        const int k = k1 + k2;
        float a[kThreadM], b[kThreadN];
        [[unroll]] for (int i = 0; i < kThreadM; ++i) a[i] = left[k * kRowA + i / 4 * (kThreadsM * 4) + tm * 4 + i % 4];
        [[unroll]] for (int j = 0; j < kThreadN; ++j) b[j] = right[k * kN + j / 4 * (kThreadsN * 4) + tn * 4 + j % 4];
        [[unroll]] for (int i = 0; i < kThreadM; ++i)
          [[unroll]] for (int j = 0; j < kThreadN; ++j) sums[i][j] = fma(a[i], b[j], sums[i][j]);
      }
#endif
    }
    barrier();
  }

  [[unroll]] for (int i = 0; i < kThreadM; ++i) {
    const int m = m0 + i / 4 * (kThreadsM * 4) + tm * 4 + i % 4;
    if (m >= G.m) continue;
    const Row row = row_at_end(m, at, part, index);
    [[unroll]] for (int j = 0; j < kThreadN; j += 4)
      store_four(row, at, n0 + j / 4 * (kThreadsN * 4) + tn * 4, vec4(sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]));
  }
}
