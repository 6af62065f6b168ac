// Implicit GEMM on matrix units: operands of 32 bits are rounded to 16 on their way into shared memory, those of 16 go there as
// they are; each subgroup multiplies fragments of them, and sums of 32 bits go out through shared memory, where it is known
// which lane has which. Matrices of a whole workgroup are as large as its tile.
// build: gemm_cooperative
// build: gemm_cooperative_half -DHALF
// build: gemm_cooperative_group -DWORKGROUP
// build: gemm_cooperative_group_half -DWORKGROUP -DHALF
// build: gemm_cooperative_emulated -DEMULATED
// build: gemm_cooperative_emulated_half -DEMULATED -DHALF
#version 460
#ifndef EMULATED
#pragma use_vulkan_memory_model
#endif
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_memory_scope_semantics : require
#include "buffers.glsl"
#include "gemm.glsl"
#include "gemm_work.glsl"

layout(constant_id = kM_id) const int kM = 64;  // of the workgroup's tile
layout(constant_id = kN_id) const int kN = 64;
layout(constant_id = kK_id) const int kK = 32;
layout(constant_id = kThreadM_id) const int kThreadM = 32;  // of a subgroup's part, in whole fragments
layout(constant_id = kThreadN_id) const int kThreadN = 32;
layout(constant_id = kPad_id) const int kPad = 8;  // fp16 values between the lines of a tile
layout(constant_id = kSubgroup_id) const int kSubgroup = 32;
layout(constant_id = kFragmentM_id) const int kFragmentM = 16;
layout(constant_id = kFragmentN_id) const int kFragmentN = 16;
layout(constant_id = kFragmentK_id) const int kFragmentK = 16;

// A run is what a thread loads at once, side by side along k: 16 bytes of x, and as many fp16 values of w.
#ifdef HALF
const int kRun = 8;
#define RUN_OF_X uvec4
#define RUN_OF_W uvec4
#else
const int kRun = 4;
#define RUN_OF_X vec4
#define RUN_OF_W uvec2
#endif
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer Fp16x8s { uvec4 v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer RunsOfW { RUN_OF_W v[]; };

const int kSubgroupsN = kN / kThreadN, kSubgroups = kM / kThreadM * kSubgroupsN, kThreads = kSubgroups * kSubgroup;
const int kPartM = kThreadM / kFragmentM, kPartN = kThreadN / kFragmentN;        // fragments of a subgroup
const int kSums = kFragmentM * kFragmentN, kVec4 = kFragmentN / 4;              // of a fragment; vec4s of a row of them
const int kRuns = kK / kRun;                                                     // along k
const int kLoadsA = kM * kRuns / kThreads, kLoadsB = kK * kN / kRun / kThreads;  // runs that a thread loads
const int kLine = kK + kPad;
shared f16vec4 left[kM * kLine / 4];   // [m][k]
shared f16vec4 right[kN * kLine / 4];  // [n][k]
shared float staging[kSubgroups * kSums];
#ifdef EMULATED
#include "fragments_emulated.glsl"
#else
#include "fragments.glsl"
#endif

// What a thread brings into the next tiles: runs of some rows of x and of some columns of w.
struct Next {
  WindowRow rows[kLoadsA];
  ivec4 tap;  // where the runs of x begin
  RUN_OF_X a[kLoadsA];
  RUN_OF_W b[kLoadsB];
  int to_left[kLoadsA], to_right[kLoadsB];  // where they go, in vec4s
};

// Setup: the rows that this thread loads, its first element of k, and where its loads go.
void begin(out Next next, Work work, int thread) {
  const int column = umod(thread, kRuns) * kRun;
  [[unroll]] for (int i = 0; i < kLoadsA; ++i) {
    const int row = udiv(thread + i * kThreads, kRuns);
    next.rows[i] = window_row(work.m0 + row, work.at.x);
    next.to_left[i] = udiv(row * kLine + column, 4);
  }
  [[unroll]] for (int i = 0; i < kLoadsB; ++i)
    next.to_right[i] = udiv(umod(thread + i * kThreads, kN) * kLine + udiv(thread + i * kThreads, kN) * kRun, 4);
  next.tap = tap_of(work.first + column);
}

// Load: a run of a row of x...
RUN_OF_X run_of_x(WindowRow row, ivec4 tap) {
#ifdef HALF
  uvec4 fp16 = uvec4(0);
  if (kVectors) {
    const ivec3 p = pixel_under(row, tap.xyz);
    if (is_there(p, tap)) fp16 = Fp16x8s(push.x).v[(element_of(row, p) + tap.w) >> 3];
  } else {
    float value[kRun];
    [[unroll]] for (int i = 0; i < kRun; ++i) {
      value[i] = x_at(row, tap);
      tap = next_tap(tap);
    }
    [[unroll]] for (int i = 0; i < kRun / 2; ++i) fp16[i] = packFloat2x16(f16vec2(value[2 * i], value[2 * i + 1]));
  }
  return fp16;
#else
  return four_of_x(row, tap);
#endif
}
// ... and of column n of w, the run-th along k; packed ones lie side by side, [run][n_padded][kRun]...
RUN_OF_W run_of_w(int run, int n, int weights) {
  if (kPacked) return RunsOfW(push.w).v[udiv(weights, kRun) + run * G.n_padded + n];
  const int k = run * kRun;
  float16_t value[kRun];
  ivec4 at = tap_within(k);
  const int from = weights + min(n, G.n - 1) * G.w_filter_stride;
  [[unroll]] for (int i = 0; i < kRun; ++i) {
    const int place = from + dot4(at, G.w_strides);
    value[i] = k + i < G.k && n < G.n ? float16_t(push.w.v[place]) : float16_t(0.0);
    at = next_tap(at);
  }
  RUN_OF_W fp16;
  [[unroll]] for (int i = 0; i < kRun / 2; ++i) fp16[i] = packFloat2x16(f16vec2(value[2 * i], value[2 * i + 1]));
  return fp16;
}
// ... all of this thread for the tiles that begin at k, into registers...
void load(inout Next next, Work work, int thread, int k) {
  [[unroll]] for (int i = 0; i < kLoadsA; ++i) next.a[i] = run_of_x(next.rows[i], next.tap);
  [[unroll]] for (int i = 0; i < kLoadsB; ++i) {
    const int at = thread + i * kThreads;
    next.b[i] = run_of_w(udiv(k, kRun) + udiv(at, kN), work.n0 + umod(at, kN), work.weights);
  }
}
// ... and from there into shared memory.
f16vec4 fp16_of(uvec2 words) { return f16vec4(unpackFloat2x16(words.x), unpackFloat2x16(words.y)); }
void put(Next next) {
#ifdef HALF
  [[unroll]] for (int i = 0; i < kLoadsA; ++i)
    left[next.to_left[i]] = fp16_of(next.a[i].xy), left[next.to_left[i] + 1] = fp16_of(next.a[i].zw);
  [[unroll]] for (int i = 0; i < kLoadsB; ++i)
    right[next.to_right[i]] = fp16_of(next.b[i].xy), right[next.to_right[i] + 1] = fp16_of(next.b[i].zw);
#else
  [[unroll]] for (int i = 0; i < kLoadsA; ++i) left[next.to_left[i]] = f16vec4(next.a[i]);
  [[unroll]] for (int i = 0; i < kLoadsB; ++i) right[next.to_right[i]] = fp16_of(next.b[i]);
#endif
}

// Finish: sums of a fragment that lie in `staging`, to outputs m.. and n... on: the epilogue, or as they are.
void finish(Work work, int m0, int n0, int from, int lane) {
  for (int four = lane; four < kSums / 4; four += kSubgroup) {
    const int m = m0 + udiv(four, kVec4), n = n0 + umod(four, kVec4) * 4, at = from + four * 4;
    if (m >= G.m) continue;
    store_vec4(row_of_y(m, work), work, n, vec4(staging[at], staging[at + 1], staging[at + 2], staging[at + 3]));
  }
}

void main() {
  const int thread = int(gl_LocalInvocationID.x), subgroup = fragment_subgroup(), lane = fragment_lane();
  const int part_m = udiv(subgroup, kSubgroupsN) * kThreadM, part_n = umod(subgroup, kSubgroupsN) * kThreadN;
  const Work work = work_of_group(kM, kN);
  if (work.m0 >= G.m) return;
  Next next;
  begin(next, work, thread);
  // Matrices are in no function's arguments: a driver would have to see that they need no copies.
  Sums sums[kPartM * kPartN];
  [[unroll]] for (int i = 0; i < kPartM * kPartN; ++i) CLEAR(sums[i]);

  load(next, work, thread, work.first);
  for (int k = work.first; k < work.last; k += kK) {
    put(next);
    tile_barrier();
    if (k + kK < work.last) {
      advance(next.tap, kK);
      load(next, work, thread, k + kK);
    }
    // Multiply: the subgroup's part of the tiles.
    [[unroll]] for (int from = 0; from < kK; from += kFragmentK) {
      RightFragment b[kPartN];
      [[unroll]] for (int j = 0; j < kPartN; ++j) b[j] = RIGHT_AT((part_n + j * kFragmentN) * kLine + from, kLine);
      [[unroll]] for (int i = 0; i < kPartM; ++i) {
        const LeftFragment a = LEFT_AT((part_m + i * kFragmentM) * kLine + from, kLine);
        [[unroll]] for (int j = 0; j < kPartN; ++j) ADD_PRODUCT(sums[i * kPartN + j], a, b[j]);
      }
    }
    tile_barrier();
  }

  const int own = subgroup * kSums;  // of staging
  [[unroll]] for (int i = 0; i < kPartM; ++i)
    [[unroll]] for (int j = 0; j < kPartN; ++j) {
      STORE_SUMS(own, kFragmentN, sums[i * kPartN + j]);
      own_barrier();
      finish(work, work.m0 + part_m + i * kFragmentM, work.n0 + part_n + j * kFragmentN, own, lane);
      own_barrier();
    }
}
