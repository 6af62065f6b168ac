// As many multiply-adds as the device's matrix unit can do at once: eight sums a subgroup that nothing else waits for.
// build: roof_fragments
#version 460
#pragma use_vulkan_memory_model
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_memory_scope_semantics : require
#include "buffers.glsl"
#include "gemm_constants.inc"

layout(push_constant, scalar) uniform Push {
  Floats y;
  int rounds;
} push;

layout(constant_id = kSubgroup_id) const int kSubgroup = 32;
layout(constant_id = kFragmentM_id) const int kFragmentM = 16;
layout(constant_id = kFragmentN_id) const int kFragmentN = 16;
layout(constant_id = kFragmentK_id) const int kFragmentK = 16;
const int kPartM = 4, kPartN = 2, kThreads = 256, kSums = kFragmentM * kFragmentN;
shared f16vec4 left[kFragmentM * kFragmentK / 4];
shared f16vec4 right[kFragmentN * kFragmentK / 4];
shared float staging[kThreads / kSubgroup * kSums];
#include "fragments.glsl"

void main() {
  const int thread = int(gl_LocalInvocationID.x);
  // Values that stay finite and that no compiler foresees.
  const float value = 0.01 + float(push.rounds) * 1e-9;
  for (int i = thread; i < kFragmentM * kFragmentK / 4; i += kThreads) left[i] = f16vec4(value * float(i % 7));
  for (int i = thread; i < kFragmentN * kFragmentK / 4; i += kThreads) right[i] = f16vec4(value * float(i % 5));
  tile_barrier();
  LeftFragment a = LEFT_AT(0, kFragmentK);
  RightFragment b = RIGHT_AT(0, kFragmentK);
  Sums sums[kPartM * kPartN];
  [[unroll]] for (int i = 0; i < kPartM * kPartN; ++i) sums[i] = splat(value * float(i));
  for (int round = 0; round < push.rounds; ++round)
    [[unroll]] for (int repeat = 0; repeat < 8; ++repeat)
      [[unroll]] for (int i = 0; i < kPartM * kPartN; ++i) ADD_PRODUCT(sums[i], a, b);
  float sum = 0.0;
  [[unroll]] for (int i = 0; i < kPartM * kPartN; ++i) {
    STORE_SUMS(fragment_subgroup() * kSums, kFragmentN, sums[i]);
    tile_barrier();
    sum += staging[fragment_subgroup() * kSums + fragment_lane()];
    tile_barrier();
  }
  if (sum == 12345.0) push.y.v[0] = 1.0;  // never: the sums are needed
}
