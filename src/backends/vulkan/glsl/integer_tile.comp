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
layout(constant_id = kThreadM_id) const int kThreadM = 4;  // of a thread's part, in fours
layout(constant_id = kThreadN_id) const int kThreadN = 4;
layout(constant_id = kVectors_id) const bool kVectors = false;  // four channels at once: their number and all pitches are multiples of 4
layout(constant_id = kPacked_id) const bool kPacked = true;  // weights are packed: signed, [k / 4][n_padded] words, zeros beyond k and n
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
int x_zero;  // less 128 where x is unsigned, as x itself
int padding; // four of them

int next_x[kLoadsX];
ivec4 next_w[kLoadsW];
int row_sum[kLoadsX];
ivec4 column_sum[kLoadsW];
int row_from[kLoadsX];
ivec3 row_at[kLoadsX];
bool outside(ivec3 p) { return any(lessThan(p, ivec3(0))) || any(greaterThanEqual(p, G.x_size.yzw)); }
// Four along k from this thread's tap and channel on; zeros beyond k.
int load_x(int load) {
  if (kVectors) {
    if (tap_t >= kFilterT) return 0;
    const ivec3 p = row_at[load] + ivec3(tap_t, tap_r, tap_s) * G.dilation.xyz;
    if (outside(p)) return padding;
    const int from = row_from[load] + p.x * G.x_pitch.y + p.y * G.x_pitch.z + p.z * G.x_pitch.w + tap_c;
    return int(Words(push.x).v[from >> 2] ^ kFlipX);
  }
  int word = 0;
  ivec4 at = ivec4(tap_t, tap_r, tap_s, tap_c);
  [[unroll]] for (int i = 0; i < 4; ++i) {
    if (at.x < kFilterT) {
      const ivec3 p = row_at[load] + at.xyz * G.dilation.xyz;
      int value = padding;
      if (!outside(p)) {
        const int from = row_from[load] + p.x * G.x_pitch.y + p.y * G.x_pitch.z + p.z * G.x_pitch.w + at.w * G.channel.x;
        value = int(push.x.v[from]) ^ int(kFlipX);
      }
      word |= (value & 255) << 8 * i;
    }
    at = next_tap(at);
  }
  return word;
}
// Four columns of quad q.
ivec4 load_w(int q, int n, int from) {
  if (kPacked) return ivec4(Words4(push.w).v[(from + q * G.n_padded + n) >> 2]);
  ivec4 value = ivec4(0);
  for (int i = 0; i < 4; ++i) {
    const int k = 4 * q + i;
    if (k >= G.k) return value;
    const ivec4 tap = tap_within(k);
    const int at = from + dot4(tap, G.w_pitch);
    [[unroll]] for (int j = 0; j < 4; ++j)
      if (n + j < G.n) value[j] |= ((int(push.w.v[at + (n + j) * G.w_filter_pitch]) ^ int(kFlipW)) & 255) << 8 * i;
  }
  return value;
}

void main() {
  const int thread = int(gl_LocalInvocationID.x);
  const Instance at = instance_at(push.first_instance + int(gl_WorkGroupID.z));
  const ivec2 origin = tile_origin(kM, kN);
  const int m0 = origin.x, n0 = origin.y;
  if (m0 >= G.m) return;
  x_zero = zero_of_x() - (kTypeX == kU8 ? 128 : 0);
  padding = (x_zero & 255) * 0x01010101;
  for (int i = thread; i < kM; i += kThreads) row_sums[i] = 0;
  for (int i = thread; i < kN; i += kThreads) column_sums[i] = 0;
  const int quad = rest(thread, kQuads);
  [[unroll]] for (int i = 0; i < kLoadsX; ++i) {
    const int m = m0 + over(thread + i * kThreads, kQuads);
    const ivec4 pixel = pixel_of(min(m, G.m - 1));
    row_from[i] = at.x + pixel.x * G.x_pitch.x;
    row_at[i] = pixel.yzw * ivec3(kStrideT, kStrideR, kStrideS) - G.pad.xyz;
    row_sum[i] = 0;
  }
  [[unroll]] for (int i = 0; i < kLoadsW; ++i) column_sum[i] = ivec4(0);
  seek(quad * 4);
  const int weights = kPacked ? at.packed : at.w;
  const int tm = over(thread, kThreadsN), tn = rest(thread, kThreadsN);
  int sums[kThreadM][kThreadN];
  [[unroll]] for (int i = 0; i < kThreadM; ++i)
    [[unroll]] for (int j = 0; j < kThreadN; ++j) sums[i][j] = 0;

  [[unroll]] for (int i = 0; i < kLoadsX; ++i) next_x[i] = load_x(i);
  [[unroll]] for (int i = 0; i < kLoadsW; ++i) {
    const int at_w = (thread + i * kThreads) * 4;
    next_w[i] = load_w(over(at_w, kN), n0 + rest(at_w, kN), weights);
  }
  for (int k0 = 0; k0 < G.k; k0 += kK) {
    [[unroll]] for (int i = 0; i < kLoadsX; ++i) {
      left[quad * kRow + over(thread + i * kThreads, kQuads)] = next_x[i];
      row_sum[i] += dot_of(next_x[i], 0x01010101);
    }
    [[unroll]] for (int i = 0; i < kLoadsW; ++i) {
      const int to = (thread + i * kThreads) * 4;
      [[unroll]] for (int j = 0; j < 4; ++j) {
        right[to + j] = next_w[i][j];
        column_sum[i][j] += dot_of(next_w[i][j], 0x01010101);
      }
    }
    barrier();
    if (k0 + kK < G.k) {
      advance();
      [[unroll]] for (int i = 0; i < kLoadsX; ++i) next_x[i] = load_x(i);
      [[unroll]] for (int i = 0; i < kLoadsW; ++i) {
        const int at_w = (thread + i * kThreads) * 4;
        next_w[i] = load_w(over(k0 + kK, 4) + over(at_w, kN), n0 + rest(at_w, kN), weights);
      }
    }
    // Fours of rows and columns lie a step of all threads apart, so that neighbours read neighbouring words.
    const int quads = min(kQuads, (G.k - k0 + 3) / 4);
    for (int q = 0; q < quads; ++q) {
      int a[kThreadM], b[kThreadN];
      [[unroll]] for (int i = 0; i < kThreadM; ++i) a[i] = left[q * kRow + i / 4 * (kThreadsM * 4) + tm * 4 + i % 4];
      [[unroll]] for (int j = 0; j < kThreadN; ++j) b[j] = right[q * kN + j / 4 * (kThreadsN * 4) + tn * 4 + j % 4];
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
    barrier();
  }

  [[unroll]] for (int i = 0; i < kLoadsX; ++i) atomicAdd(row_sums[over(thread + i * kThreads, kQuads)], row_sum[i]);
  [[unroll]] for (int i = 0; i < kLoadsW; ++i)
    [[unroll]] for (int j = 0; j < 4; ++j) atomicAdd(column_sums[(thread + i * kThreads) * 4 % kN + j], column_sum[i][j]);
  barrier();
  [[unroll]] for (int j = 0; j < kThreadN; j += 4) {
    const int column = j / 4 * (kThreadsN * 4) + tn * 4, n = n0 + column;
    if (n >= G.n) continue;
    ivec4 w_zero, offset;
    [[unroll]] for (int l = 0; l < 4; ++l) {
      w_zero[l] = zero_of_w(at.channel + min(n + l, G.n - 1)) - (kTypeW == kU8 ? 128 : 0);
      offset[l] = x_zero * (G.k * w_zero[l] - column_sums[column + l]);
    }
    [[unroll]] for (int i = 0; i < kThreadM; ++i) {
      const int row = i / 4 * (kThreadsM * 4) + tm * 4 + i % 4, m = m0 + row;
      if (m >= G.m) continue;
      const int to = at.y + dot4(pixel_of(m), G.y_pitch);
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
