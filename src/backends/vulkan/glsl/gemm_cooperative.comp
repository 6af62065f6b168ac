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
#ifdef EIGHTS
const int kLoad = 8;
#else
const int kLoad = 4;
#endif
const int kParts = kK / kLoad;
const int kLoadsA = kM * kParts / kThreads, kLoadsB = kK * kN / kLoad / kThreads;
const int kRowA = kK + kPad, kRowB = kN + kPad;
shared float16_t left[kM * kRowA];
shared float16_t right[kK * kRowB];
shared float staging[kSubgroups * kSums];

#include "gemm_gather.glsl"
#include "gemm_store.glsl"
#include "fragments.glsl"

#ifdef EIGHTS
uvec4 next_b[kLoadsB];
#else
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Fours { uvec2 v[]; };
uvec2 next_b[kLoadsB];
#endif
uvec2 halves_of(vec4 four) { return uvec2(packFloat2x16(f16vec2(four.xy)), packFloat2x16(f16vec2(four.zw))); }
void load_columns(int thread, int k, int n0, int from) {
  [[unroll]] for (int i = 0; i < kLoadsB; ++i) {
    const int at = (thread + i * kThreads) * kLoad, row = k + at / kN, n = n0 + at % kN;
#ifdef EIGHTS
    if (kPacked) next_b[i] = Eights(push.w).v[(from + row * G.n_padded + n) >> 3];
    else next_b[i] = uvec4(halves_of(load_b(row, n, from)), halves_of(load_b(row, n + 4, from)));
#else
    if (kPacked) next_b[i] = Fours(push.w).v[(from + row * G.n_padded + n) >> 2];
    else next_b[i] = halves_of(load_b(row, n, from));
#endif
  }
}

void main() {
  const int thread = int(gl_LocalInvocationID.x), column = thread % kParts * kLoad;
  const int index = instance_index(), part = part_index();
  const Instance at = instance_at(index);
  const ivec2 origin = tile_origin(kM, kN);
  const int m0 = origin.x, n0 = origin.y;
  if (m0 >= G.m) return;
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
      const int to = (thread + i * kThreads) / kParts * kRowA + column;
#ifdef EIGHTS
      [[unroll]] for (int j = 0; j < kLoad; ++j) left[to + j] = unpackFloat2x16(next_a[i][j / 2])[j % 2];
#else
      [[unroll]] for (int j = 0; j < kLoad; ++j) left[to + j] = float16_t(next_a[i][j]);
#endif
    }
    [[unroll]] for (int i = 0; i < kLoadsB; ++i) {
      const int from = (thread + i * kThreads) * kLoad, to = from / kN * kRowB + from % kN;
      [[unroll]] for (int j = 0; j < kLoad; ++j) right[to + j] = unpackFloat2x16(next_b[i][j / 2])[j % 2];
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
