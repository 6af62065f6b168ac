// Products of real numbers: operands, epilogue and what finishes a sum.
#include "gemm_record.glsl"

layout(push_constant, scalar) uniform Push {
  Elements x, w, y, scale, bias, r0, r1;
  POST_OP_OPERANDS
  GemmRecords record;
  int first_instance;
  int parts;  // workgroups that share a sum, side by side along z
  int steps;  // of k that each of them adds, a multiple of the tile's
} push;

// The epilogue, bound when the pipeline is made.
layout(constant_id = kActivation_id) const uint kActivation = 0;
layout(constant_id = kScale_id) const bool kScale = false;
layout(constant_id = kBias_id) const bool kBias = false;
layout(constant_id = kBefore_id) const int kBefore = 0;  // residuals
layout(constant_id = kAfter_id) const int kAfter = 0;

#define G push.record.v

#include "gemm_index.glsl"
// Where a row of partial sums lies, in rows of vec4s.
int partial_at(int part, int instance, int m) {
  const int instances = G.instances.x * G.instances.y * G.instances.z * G.instances.w;
  return ((part * instances + instance) * G.m + m) * ((G.n + 3) / 4 * 4);
}
#include "activations.glsl"

POST_OP_FUNCTION
// The sum of row `pixel` and filter k of an instance, to what is stored.
float finished(float sum, Instance i, ivec4 pixel, int k) {
  sum *= G.alpha;
  if (kScale) sum *= float(push.scale.v[i.channel + k]);
  if (kBias) sum += float(push.bias.v[i.channel + k]);
  const float first = kBefore + kAfter > 0 ? float(push.r0.v[i.r0 + dot4(pixel, G.r_strides[0]) + k * G.channel.z]) : 0.0;
  const float second = kBefore + kAfter > 1 ? float(push.r1.v[i.r1 + dot4(pixel, G.r_strides[1]) + k * G.channel.w]) : 0.0;
  if (kBefore > 0) sum += first;
  if (kBefore > 1) sum += second;
  sum = activated(kActivation, sum, G.a, G.b);
  if (kAfter > 0) sum += kBefore > 0 ? second : first;
  if (kAfter > 1) sum += second;
  return WITH_POST_OP(sum, pixel, i.channel + k, i.number);
}
