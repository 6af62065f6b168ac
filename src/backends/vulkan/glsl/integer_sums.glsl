// Sums of products of 8-bit integers (families/integers/integers.h): operands, and what finishes a sum.
#include "bytes.glsl"
#include "gemm_record.glsl"

layout(push_constant, scalar) uniform Push {
  Bytes x, w, y;
  Floats scale;
  Ints bias;
  Bytes x_zero, w_zero, y_zero;
  GemmRecords record;
  int first_instance;
  ivec2 range;  // of y
  int scale_stride, bias_stride, w_zero_stride;
} push;

layout(constant_id = kTypeX_id) const uint kTypeX = 0;
layout(constant_id = kTypeW_id) const uint kTypeW = 0;
layout(constant_id = kTypeY_id) const uint kTypeY = 0;
layout(constant_id = kScale_id) const bool kScale = false;  // y is requantised, else the sums themselves
layout(constant_id = kBias_id) const bool kBias = false;

#define G push.record.v

#include "gemm_index.glsl"

int zero_of_x() { return integer_at(push.x_zero, kTypeX, 0); }
int zero_of_w(int filter_) { return integer_at(push.w_zero, kTypeW, filter_ * push.w_zero_stride); }

// The sum of a filter (counted over all instances), to what is stored.
int finished(int sum, int filter_) {
  if (kBias) sum += push.bias.v[filter_ * push.bias_stride];
  if (!kScale) return sum;
  return requantized(sum, push.scale.v[filter_ * push.scale_stride], integer_at(push.y_zero, kTypeY, 0), push.range);
}
