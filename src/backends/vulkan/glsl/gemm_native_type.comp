// Products in the operands' own type: doubles, or integers modulo 2^32 or 2^64. A workgroup makes a tile of outputs; both
// operands go through shared memory element by element, so that any layout and window serves.
// build: gemm_doubles -DDOUBLES
// build: gemm_words
// build: gemm_pairs -DPAIRS
// build: gemm_words_factor -DFACTOR
// build: gemm_pairs_factor -DPAIRS -DFACTOR
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#if defined(DOUBLES) || defined(FACTOR)
#include "pointwise_doubles.glsl"
#endif
#if defined(DOUBLES)
#include "activations_doubles.glsl"
#define NUMBER double
#define NUMBER_BYTES 8
#elif defined(PAIRS)
#include "pointwise_integers.glsl"
#define NUMBER uvec2
#define NUMBER_BYTES 8
#else
#define NUMBER uint
#define NUMBER_BYTES 4
#endif
#include "gemm_record.glsl"

layout(buffer_reference, scalar, buffer_reference_align = NUMBER_BYTES) buffer Numbers { NUMBER v[]; };
#if defined(DOUBLES) || defined(FACTOR)
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer Records { GemmRecord v; double alpha, a, b; };
#else
#define Records GemmRecords
#endif
layout(push_constant, scalar) uniform Push {
  Numbers x, w, y, scale, bias, r0, r1;
  Records record;
  int first_instance;
} push;

// The epilogue; of integers without activation and scale.
layout(constant_id = kActivation_id) const uint kActivation = 0;
layout(constant_id = kScale_id) const bool kScale = false;
layout(constant_id = kBias_id) const bool kBias = false;
layout(constant_id = kBefore_id) const int kBefore = 0;  // residuals
layout(constant_id = kAfter_id) const int kAfter = 0;
layout(constant_id = kM_id) const int kM = 32;  // of the workgroup's tile
layout(constant_id = kN_id) const int kN = 32;
layout(constant_id = kK_id) const int kK = 16;
layout(constant_id = kThreadM_id) const int kThreadM = 2;  // of a thread's part
layout(constant_id = kThreadN_id) const int kThreadN = 2;
layout(constant_id = kPad_id) const int kPad = 1;
layout(constant_id = kSigned_id) const bool kSigned = false;  // integers that a factor is applied to

const int kThreadsM = kM / kThreadM, kThreadsN = kN / kThreadN, kThreads = kThreadsM * kThreadsN;
const int kRows = kThreads / kK, kLoadsA = kM / kRows;   // that all threads load at once
const int kDepth = kThreads / kN, kLoadsB = kK / kDepth;
const int kRowA = kM + kPad;
shared NUMBER left[kK * kRowA];
shared NUMBER right[kK * kN];

#define G push.record.v
#include "gemm_index.glsl"

NUMBER sum_of(NUMBER a, NUMBER b) {
#ifdef PAIRS
  return add_of(a, b);
#else
  return a + b;
#endif
}
NUMBER added(NUMBER a, NUMBER b, NUMBER sum) {
#if defined(DOUBLES)
  return fma(a, b, sum);
#elif defined(PAIRS)
  return add_of(sum, mul_of(a, b));
#else
  return sum + a * b;
#endif
}
#ifdef FACTOR
// A factor of integers is applied in double precision; what results is truncated, and saturates.
NUMBER scaled(NUMBER sum) {
  const double alpha = push.record.alpha;
#ifdef PAIRS
  return kSigned ? i64_of_f64(alpha * double_of_i64_f64(sum)) : u64_of_f64(alpha * double_of_u64_f64(sum));
#else
  return kSigned ? i32_of_f64(alpha * double(int(sum))) : u32_of_f64(alpha * double(sum));
#endif
}
#endif
NUMBER finished(NUMBER sum, Instance i, ivec4 pixel, int k) {
#ifdef DOUBLES
  sum *= push.record.alpha;
  if (kScale) sum *= push.scale.v[i.channel + k];
#elif defined(FACTOR)
  sum = scaled(sum);
#endif
  if (kBias) sum = sum_of(sum, push.bias.v[i.channel + k]);
  const NUMBER first = kBefore + kAfter > 0 ? push.r0.v[i.r0 + dot4(pixel, G.r_strides[0]) + k * G.channel.z] : NUMBER(0);
  const NUMBER second = kBefore + kAfter > 1 ? push.r1.v[i.r1 + dot4(pixel, G.r_strides[1]) + k * G.channel.w] : NUMBER(0);
  if (kBefore > 0) sum = sum_of(sum, first);
  if (kBefore > 1) sum = sum_of(sum, second);
#ifdef DOUBLES
  sum = activated_f64(kActivation, sum, push.record.a, push.record.b);
#endif
  if (kAfter > 0) sum = sum_of(sum, kBefore > 0 ? second : first);
  if (kAfter > 1) sum = sum_of(sum, second);
  return sum;
}

// Element k of a row of the left operand: its tap d,h,w, and its channel.
ivec4 tap_of(int k) {
  ivec4 tap;
  tap.w = k % G.filter_size.w, k /= G.filter_size.w;
  tap.z = k % G.filter_size.z, k /= G.filter_size.z;
  tap.y = k % G.filter_size.y;
  tap.x = k / G.filter_size.y;
  return tap;
}

void main() {
  const int thread = int(gl_LocalInvocationID.x);
  const Instance at = instance_at(push.first_instance + int(gl_WorkGroupID.z));
  const ivec2 origin = tile_origin(kM, kN);
  const int m0 = origin.x, n0 = origin.y;
  if (m0 >= G.m) return;
  const int tm = thread / kThreadsN, tn = thread % kThreadsN;
  const int depth_a = thread % kK, row_a = thread / kK, depth_b = thread / kN, n_b = n0 + thread % kN;
  ivec4 pixels[kLoadsA];
  [[unroll]] for (int i = 0; i < kLoadsA; ++i) pixels[i] = pixel_of(m0 + row_a + i * kRows);
  NUMBER sums[kThreadM][kThreadN];
  [[unroll]] for (int i = 0; i < kThreadM; ++i)
    [[unroll]] for (int j = 0; j < kThreadN; ++j) sums[i][j] = NUMBER(0);

  for (int k0 = 0; k0 < G.k; k0 += kK) {
    const ivec4 tap = tap_of(k0 + depth_a);
    const ivec3 reach = tap.xyz * G.dilation.xyz - G.pad.xyz;
    [[unroll]] for (int i = 0; i < kLoadsA; ++i) {
      const int row = row_a + i * kRows;
      const ivec3 seen = pixels[i].yzw * G.stride.xyz + reach;
      const bool there = m0 + row < G.m && k0 + depth_a < G.k && all(greaterThanEqual(seen, ivec3(0))) &&
                         all(lessThan(seen, G.x_size.yzw));
      left[depth_a * kRowA + row] =
          there ? push.x.v[at.x + dot4(ivec4(pixels[i].x, seen), G.x_strides) + tap.w * G.channel.x] : NUMBER(0);
    }
    [[unroll]] for (int i = 0; i < kLoadsB; ++i) {
      const int depth = depth_b + i * kDepth;
      const ivec4 of = tap_of(k0 + depth);
      right[depth * kN + thread % kN] =
          n_b < G.n && k0 + depth < G.k
              ? push.w.v[at.w + n_b * G.w_filter_stride + dot4(of, G.w_strides)]
              : NUMBER(0);
    }
    barrier();
    for (int k = 0; k < kK; ++k) {
      NUMBER a[kThreadM], b[kThreadN];
      [[unroll]] for (int i = 0; i < kThreadM; ++i) a[i] = left[k * kRowA + tm + i * kThreadsM];
      [[unroll]] for (int j = 0; j < kThreadN; ++j) b[j] = right[k * kN + tn + j * kThreadsN];
      [[unroll]] for (int i = 0; i < kThreadM; ++i)
        [[unroll]] for (int j = 0; j < kThreadN; ++j) sums[i][j] = added(a[i], b[j], sums[i][j]);
    }
    barrier();
  }
  [[unroll]] for (int i = 0; i < kThreadM; ++i) {
    const int m = m0 + tm + i * kThreadsM;
    const ivec4 pixel = pixel_of(m);
    [[unroll]] for (int j = 0; j < kThreadN; ++j) {
      const int n = n0 + tn + j * kThreadsN;
      if (m < G.m && n < G.n) push.y.v[at.y + dot4(pixel, G.y_strides) + n * G.channel.y] = finished(sums[i][j], at, pixel, n);
    }
  }
}
