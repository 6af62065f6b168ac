// Implicit GEMM on matrix units: operands are rounded to 16 bits on their way into shared memory, each subgroup multiplies
// fragments of them, and sums of 32 bits go out through shared memory, where it is known which lane has which. Matrices of a
// whole workgroup are as large as its tile.
// build: gemm_cooperative
// build: gemm_cooperative_group -DWORKGROUP
// build: gemm_cooperative_emulated -DEMULATED
#version 460
#ifndef EMULATED
#pragma use_vulkan_memory_model
#endif
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_memory_scope_semantics : require
#include "buffers.glsl"
#include "gemm.glsl"

layout(constant_id = 8) const int kM = 64;  // of the workgroup's tile
layout(constant_id = 9) const int kN = 64;
layout(constant_id = 10) const int kK = 32;
layout(constant_id = 11) const int kThreadM = 32;  // of a subgroup's part, in whole fragments
layout(constant_id = 12) const int kThreadN = 32;
layout(constant_id = 22) const int kPad = 8;  // halves between the rows of a tile, which keep them in different banks
layout(constant_id = 24) const bool kPartial = false;  // sums of a part go out as they are: [part][instance][m][n_padded]
layout(constant_id = 25) const int kSubgroup = 32;
layout(constant_id = 26) const int kFragmentM = 16;
layout(constant_id = 27) const int kFragmentN = 16;
layout(constant_id = 28) const int kFragmentK = 16;

const int kSubgroupsN = kN / kThreadN, kSubgroups = kM / kThreadM * kSubgroupsN, kThreads = kSubgroups * kSubgroup;
const int kPartM = kThreadM / kFragmentM, kPartN = kThreadN / kFragmentN;  // fragments
const int kSums = kFragmentM * kFragmentN, kFours = kFragmentN / 4;
const int kQuads = kK / 4;
const int kLoadsA = kM * kQuads / kThreads, kLoadsB = kK * kN / 4 / kThreads;
const int kRowA = kK + kPad, kRowB = kN + kPad;
shared float16_t left[kM * kRowA];
shared float16_t right[kK * kRowB];
shared float staging[kSubgroups * kSums];

#include "gemm_gather.glsl"
#include "gemm_store.glsl"
#include "fragments.glsl"

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer PackedHalves { uvec2 v[]; };
uvec2 next_b[kLoadsB];
void load_columns(int thread, int k, int n0, int from) {
  [[unroll]] for (int i = 0; i < kLoadsB; ++i) {
    const int at = (thread + i * kThreads) * 4, row = k + at / kN, n = n0 + at % kN;
    if (kPacked) {
      next_b[i] = PackedHalves(push.w).v[(from + row * G.n_padded + n) >> 2];
    } else {
      const f16vec4 four = f16vec4(load_b(row, n, from));
      next_b[i] = uvec2(packFloat2x16(four.xy), packFloat2x16(four.zw));
    }
  }
}

void main() {
  const int thread = int(gl_LocalInvocationID.x), quad = thread % kQuads;
  const int index = instance_index(), part = part_index();
  const Instance at = instance_at(index);
  const int m0 = int(gl_WorkGroupID.y) * kM, n0 = int(gl_WorkGroupID.x) * kN;
  const int first = part * push.steps, last = min(G.k, first + push.steps);
  const int weights = kPacked ? at.packed : at.w;
  const int subgroup = fragment_subgroup(), lane = fragment_lane();
  const int part_m = subgroup / kSubgroupsN * kThreadM, part_n = subgroup % kSubgroupsN * kThreadN;
  begin_rows(thread, at, m0, first);
  DECLARE_SUMS;

  load_rows();
  load_columns(thread, first, n0, weights);
  for (int k0 = first; k0 < last; k0 += kK) {
    [[unroll]] for (int i = 0; i < kLoadsA; ++i) {
      const int to = (thread + i * kThreads) / kQuads * kRowA + quad * 4;
      [[unroll]] for (int j = 0; j < 4; ++j) left[to + j] = float16_t(next_a[i][j]);
    }
    [[unroll]] for (int i = 0; i < kLoadsB; ++i) {
      const int to = (thread + i * kThreads) * 4 / kN * kRowB + (thread + i * kThreads) * 4 % kN;
      const f16vec2 low = unpackFloat2x16(next_b[i].x), high = unpackFloat2x16(next_b[i].y);
      right[to] = low.x, right[to + 1] = low.y, right[to + 2] = high.x, right[to + 3] = high.y;
    }
    barrier();
    if (k0 + kK < last) {
      advance();
      load_rows();
      load_columns(thread, k0 + kK, n0, weights);
    }
    [[unroll]] for (int k = 0; k < kK; k += kFragmentK) {
      RightFragment b[kPartN];
      [[unroll]] for (int j = 0; j < kPartN; ++j) LOAD_RIGHT(b[j], k * kRowB + part_n + j * kFragmentN, kRowB);
      [[unroll]] for (int i = 0; i < kPartM; ++i) {
        LeftFragment a;
        LOAD_LEFT(a, (part_m + i * kFragmentM) * kRowA + k, kRowA);
        [[unroll]] for (int j = 0; j < kPartN; ++j) MULTIPLY(i * kPartN + j, a, b[j]);
      }
    }
    barrier();
  }

  [[unroll]] for (int i = 0; i < kPartM; ++i)
    [[unroll]] for (int j = 0; j < kPartN; ++j) {
      STORE_SUMS(subgroup * kSums, kFragmentN, i * kPartN + j);
      barrier();
      for (int four = lane; four < kSums / 4; four += kSubgroup) {
        const int m = m0 + part_m + i * kFragmentM + four / kFours, n = n0 + part_n + j * kFragmentN + four % kFours * 4;
        if (m >= G.m) continue;
        const int from = subgroup * kSums + four * 4;
        store_four(row_at_end(m, at, part, index), at, n,
                   vec4(staging[from], staging[from + 1], staging[from + 2], staging[from + 3]));
      }
      barrier();
    }
}
