// Implicit GEMM on matrix units: operands of 32 bits are rounded to 16 on their way into shared memory, those of 16 go there as
// they are; each subgroup multiplies fragments of them, and sums of 32 bits go out through shared memory, where it is known
// which lane has which. Matrices of a whole workgroup are as large as its tile.
// build: gemm_cooperative
// build: gemm_cooperative_half -DHALF -DEIGHTS
// build: gemm_cooperative_group -DWORKGROUP
// build: gemm_cooperative_group_half -DWORKGROUP -DHALF -DEIGHTS
// build: gemm_cooperative_emulated -DEMULATED
// build: gemm_cooperative_emulated_half -DEMULATED -DHALF -DEIGHTS
#version 460
#ifndef EMULATED
#pragma use_vulkan_memory_model
#endif
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_memory_scope_semantics : require
#include "buffers.glsl"
#include "gemm.glsl"

layout(constant_id = kM_id) const int kM = 64;  // of the workgroup's tile
layout(constant_id = kN_id) const int kN = 64;
layout(constant_id = kK_id) const int kK = 32;
layout(constant_id = kThreadM_id) const int kThreadM = 32;  // of a subgroup's part, in whole fragments
layout(constant_id = kThreadN_id) const int kThreadN = 32;
layout(constant_id = kPad_id) const int kPad = 8;  // halves between the lines of a tile, which keep them in different banks
layout(constant_id = kPartial_id) const bool kPartial = false;  // sums of a part go out as they are: [part][instance][m][n_padded]
layout(constant_id = kSubgroup_id) const int kSubgroup = 32;
layout(constant_id = kFragmentM_id) const int kFragmentM = 16;
layout(constant_id = kFragmentN_id) const int kFragmentN = 16;
layout(constant_id = kFragmentK_id) const int kFragmentK = 16;

const int kSubgroupsN = kN / kThreadN, kSubgroups = kM / kThreadM * kSubgroupsN, kThreads = kSubgroups * kSubgroup;
const int kPartM = kThreadM / kFragmentM, kPartN = kThreadN / kFragmentN;  // fragments
const int kSums = kFragmentM * kFragmentN, kFours = kFragmentN / 4;
#ifdef EIGHTS
const int kLoad = 8;
#else
const int kLoad = 4;
#endif
const int kParts = kK / kLoad;
const int kLoadsA = kM * kParts / kThreads, kLoadsB = kK * kN / kLoad / kThreads;
const int kLine = kK + kPad;  // a row of the left tile, a column of the right one
shared f16vec4 left[kM * kLine / 4];
shared f16vec4 right[kN * kLine / 4];
shared float staging[kSubgroups * kSums];

#include "gemm_gather.glsl"
#include "gemm_store.glsl"
#include "fragments.glsl"

// kLoad elements of a column of the right operand: packed ones lie side by side, [k / kLoad][n_padded][kLoad].
#ifdef EIGHTS
#define COLUMN uvec4
#else
#define COLUMN uvec2
#endif
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Columns { COLUMN v[]; };
COLUMN next_b[kLoadsB];
COLUMN column_of(int k, int n, int from) {
  float16_t value[kLoad];
  ivec4 at = tap_within(k);
  from += min(n, G.n - 1) * G.w_filter_pitch;
  [[unroll]] for (int i = 0; i < kLoad; ++i) {
    const int place = from + dot4(at, G.w_pitch);
    value[i] = k + i < G.k && n < G.n ? float16_t(push.w.v[place]) : float16_t(0.0);
    at = next_tap(at);
  }
  COLUMN packed;
  [[unroll]] for (int i = 0; i < kLoad / 2; ++i) packed[i] = packFloat2x16(f16vec2(value[2 * i], value[2 * i + 1]));
  return packed;
}
void load_columns(int thread, int k, int n0, int from) {
  [[unroll]] for (int i = 0; i < kLoadsB; ++i) {
    const int chunk = thread + i * kThreads, run = over(k, kLoad) + over(chunk, kN), n = n0 + rest(chunk, kN);
    if (kPacked) next_b[i] = Columns(push.w).v[over(from, kLoad) + run * G.n_padded + n];
    else next_b[i] = column_of(run * kLoad, n, from);
  }
}
f16vec4 halves_of(uvec2 words) { return f16vec4(unpackFloat2x16(words.x), unpackFloat2x16(words.y)); }

void main() {
  const int thread = int(gl_LocalInvocationID.x), column = rest(thread, kParts) * kLoad;
  const int index = instance_index(), part = part_index();
  const Instance at = instance_at(index);
  const ivec2 origin = tile_origin(kM, kN);
  const int m0 = origin.x, n0 = origin.y;
  if (m0 >= G.m) return;
  const int first = part * push.steps, last = min(G.k, first + push.steps);
  const int weights = kPacked ? at.packed : at.w;
  const int subgroup = fragment_subgroup(), lane = fragment_lane();
  const int part_m = over(subgroup, kSubgroupsN) * kThreadM, part_n = rest(subgroup, kSubgroupsN) * kThreadN;
  begin_rows(thread, at, m0, first);
  // Where this thread's loads go, in fours.
  int to_left[kLoadsA], to_right[kLoadsB];
  [[unroll]] for (int i = 0; i < kLoadsA; ++i) to_left[i] = over(over(thread + i * kThreads, kParts) * kLine + column, 4);
  [[unroll]] for (int i = 0; i < kLoadsB; ++i)
    to_right[i] = over(rest(thread + i * kThreads, kN) * kLine + over(thread + i * kThreads, kN) * kLoad, 4);
  DECLARE_SUMS;

  load_rows();
  load_columns(thread, first, n0, weights);
  for (int k0 = first; k0 < last; k0 += kK) {
    [[unroll]] for (int i = 0; i < kLoadsA; ++i) {
#ifdef EIGHTS
      left[to_left[i]] = halves_of(next_a[i].xy), left[to_left[i] + 1] = halves_of(next_a[i].zw);
#else
      left[to_left[i]] = f16vec4(next_a[i]);
#endif
    }
    [[unroll]] for (int i = 0; i < kLoadsB; ++i) {
      right[to_right[i]] = halves_of(next_b[i].xy);
#ifdef EIGHTS
      right[to_right[i] + 1] = halves_of(next_b[i].zw);
#endif
    }
    tile_barrier();
    if (k0 + kK < last) {
      advance();
      load_rows();
      load_columns(thread, k0 + kK, n0, weights);
    }
    [[unroll]] for (int k = 0; k < kK; k += kFragmentK) {
      RightFragment b[kPartN];
      [[unroll]] for (int j = 0; j < kPartN; ++j) LOAD_RIGHT(b[j], (part_n + j * kFragmentN) * kLine + k, kLine);
      [[unroll]] for (int i = 0; i < kPartM; ++i) {
        LeftFragment a;
        LOAD_LEFT(a, (part_m + i * kFragmentM) * kLine + k, kLine);
        [[unroll]] for (int j = 0; j < kPartN; ++j) MULTIPLY(i * kPartN + j, a, b[j]);
      }
    }
    tile_barrier();
  }

  [[unroll]] for (int i = 0; i < kPartM; ++i)
    [[unroll]] for (int j = 0; j < kPartN; ++j) {
      STORE_SUMS(subgroup * kSums, kFragmentN, i * kPartN + j);
      own_barrier();
      for (int four = lane; four < kSums / 4; four += kSubgroup) {
        const int m = m0 + part_m + i * kFragmentM + over(four, kFours), n = n0 + part_n + j * kFragmentN + rest(four, kFours) * 4;
        if (m >= G.m) continue;
        const int from = subgroup * kSums + four * 4;
        store_four(row_at_end(m, at, part, index), at, n,
                   vec4(staging[from], staging[from + 1], staging[from + 2], staging[from + 3]));
      }
      own_barrier();
    }
}
