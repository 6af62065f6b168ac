// As many multiply-adds as the device can do at once: eight sums a thread that nothing else waits for.
// build: roof_fma_f32 -DNUMBER=float
// build: roof_fma_f16 -DNUMBER=f16vec2 -DFP16
#version 460
#extension GL_GOOGLE_include_directive : require
#ifdef FP16
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#endif
#include "buffers.glsl"

layout(push_constant, scalar) uniform Push {
  Floats y;
  int rounds;
} push;

void main() {
  NUMBER sums[8];
  // Values that stay finite and that no compiler foresees.
  const NUMBER factor = NUMBER(0.5 + float(push.rounds) * 1e-9), summand = NUMBER(float(gl_LocalInvocationID.x) * 1e-3);
  [[unroll]] for (int i = 0; i < 8; ++i) sums[i] = NUMBER(float(i));
  for (int round = 0; round < push.rounds; ++round)
    [[unroll]] for (int repeat = 0; repeat < 8; ++repeat)
      [[unroll]] for (int i = 0; i < 8; ++i) sums[i] = fma(sums[i], factor, summand);
  NUMBER sum = sums[0];
  [[unroll]] for (int i = 1; i < 8; ++i) sum += sums[i];
  if (float(sum.x) == 12345.0) push.y.v[0] = 1.0;  // never: the sums are needed
}
