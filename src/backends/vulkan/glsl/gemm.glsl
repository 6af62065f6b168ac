// A gemm stage as its kernels see it: gemm_record.h has the same fields, and says what they are.
struct GemmRecord {
  ivec4 rows, x_size, x_pitch, y_pitch, r0_pitch, r1_pitch, channel, filter_size, stride, dilation, pad;
  ivec4 w_pitch, w_pitch_more;
  ivec4 instances, x_instance, w_instance, y_instance, r0_instance, r1_instance;
  int m, n, k, n_padded, channel_instance;
  ivec4 packed_instance;
  float alpha, a, b;
};
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer GemmRecords { GemmRecord v; };

layout(push_constant, scalar) uniform Push {
  Floats x, w, y, scale, bias, r0, r1;
  GemmRecords record;
  int first_instance;
  int parts;  // workgroups that share a sum, side by side along z
  int steps;  // of k that each of them adds, a multiple of the tile's
} push;

// The epilogue, bound when the pipeline is made.
layout(constant_id = 3) const uint kActivation = 0;
layout(constant_id = 4) const bool kScale = false;
layout(constant_id = 5) const bool kBias = false;
layout(constant_id = 6) const int kBefore = 0;  // residuals
layout(constant_id = 7) const int kAfter = 0;

#define G push.record.v

// Positions of an instance in each operand.
struct Instance {
  int x, w, y, r0, r1, channel, packed;
};
Instance instance_at(int index) {
  ivec4 at;
  [[unroll]] for (int i = 3; i >= 0; --i) {
    at[i] = index % G.instances[i];
    index /= G.instances[i];
  }
  const int number = ((at.x * G.instances.y + at.y) * G.instances.z + at.z) * G.instances.w + at.w;
  Instance r;
  r.x = at.x * G.x_instance.x + at.y * G.x_instance.y + at.z * G.x_instance.z + at.w * G.x_instance.w;
  r.w = at.x * G.w_instance.x + at.y * G.w_instance.y + at.z * G.w_instance.z + at.w * G.w_instance.w;
  r.y = at.x * G.y_instance.x + at.y * G.y_instance.y + at.z * G.y_instance.z + at.w * G.y_instance.w;
  r.r0 = at.x * G.r0_instance.x + at.y * G.r0_instance.y + at.z * G.r0_instance.z + at.w * G.r0_instance.w;
  r.r1 = at.x * G.r1_instance.x + at.y * G.r1_instance.y + at.z * G.r1_instance.z + at.w * G.r1_instance.w;
  r.packed = at.x * G.packed_instance.x + at.y * G.packed_instance.y + at.z * G.packed_instance.z + at.w * G.packed_instance.w;
  r.channel = number * G.channel_instance;
  return r;
}

// Row m as output pixel n,d,h,w.
ivec4 pixel_of(int m) {
  ivec4 p;
  p.w = m % G.rows.w, m /= G.rows.w;
  p.z = m % G.rows.z, m /= G.rows.z;
  p.y = m % G.rows.y;
  p.x = m / G.rows.y;
  return p;
}
// Where a row of partial sums lies, in rows of fours.
int partial_at(int part, int instance, int m) {
  const int instances = G.instances.x * G.instances.y * G.instances.z * G.instances.w;
  return ((part * instances + instance) * G.m + m) * ((G.n + 3) / 4 * 4);
}
int dot4(ivec4 a, ivec4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }

#include "activations.glsl"

// The sum of row `pixel` and filter k of an instance, to what is stored.
float finished(float sum, Instance i, ivec4 pixel, int k) {
  sum *= G.alpha;
  if (kScale) sum *= push.scale.v[i.channel + k];
  if (kBias) sum += push.bias.v[i.channel + k];
  const float first = kBefore + kAfter > 0 ? push.r0.v[i.r0 + dot4(pixel, G.r0_pitch) + k * G.channel.z] : 0.0;
  const float second = kBefore + kAfter > 1 ? push.r1.v[i.r1 + dot4(pixel, G.r1_pitch) + k * G.channel.w] : 0.0;
  if (kBefore > 0) sum += first;
  if (kBefore > 1) sum += second;
  sum = activated(kActivation, sum, G.a, G.b);
  if (kAfter > 0) sum += kBefore > 0 ? second : first;
  if (kAfter > 1) sum += second;
  return sum;
}
