// A depthwise stage as its kernels see it.
#include "divide.glsl"
#include "post_op.glsl"

struct DepthwiseRecord {
#include "record_fields.inc"
#include "depthwise_record.inc"
};
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer DepthwiseRecords { DepthwiseRecord v; POST_OP_RECORD };

layout(push_constant, scalar) uniform Push {
  Elements x, w, y, scale, bias, r0, r1;
  POST_OP_OPERANDS
  DepthwiseRecords record;
} push;

// The epilogue, bound when the pipeline is made.
layout(constant_id = 3) const uint kActivation = 0;
layout(constant_id = 4) const bool kScale = false;
layout(constant_id = 5) const bool kBias = false;
layout(constant_id = 6) const int kBefore = 0;  // residuals
layout(constant_id = 7) const int kAfter = 0;

#define R push.record.v

#include "activations.glsl"

int dot4(ivec4 a, ivec4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }

POST_OP_FUNCTION
// The sum of output pixel n,d,h,w and filter k, to what is stored.
float finished(float sum, ivec4 pixel, int k) {
  sum *= R.alpha;
  if (kScale) sum *= float(push.scale.v[k * R.vector_strides.x]);
  if (kBias) sum += float(push.bias.v[k * R.vector_strides.y]);
  const float first = kBefore + kAfter > 0 ? float(push.r0.v[dot4(pixel, R.r_strides[0]) + k * R.channel.z]) : 0.0;
  const float second = kBefore + kAfter > 1 ? float(push.r1.v[dot4(pixel, R.r_strides[1]) + k * R.channel.w]) : 0.0;
  if (kBefore > 0) sum += first;
  if (kBefore > 1) sum += second;
  sum = activated(kActivation, sum, R.a, R.b);
  if (kAfter > 0) sum += kBefore > 0 ? second : first;
  if (kAfter > 1) sum += second;
  return WITH_POST_OP(sum, pixel, k, 0);
}
