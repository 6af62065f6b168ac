// A gemm stage as its kernels see it: gemm_record.h has the same fields, and says what they are.
#include "gemm_constants.inc"
#include "tail.glsl"
#include "divide.glsl"
struct GemmRecord {
  ivec4 rows, x_size, x_pitch, y_pitch, r0_pitch, r1_pitch, channel, filter_size, stride, dilation, pad;
  ivec4 w_pitch, w_pitch_more;
  ivec4 instances, x_instance, w_instance, y_instance, r0_instance, r1_instance;
  int m, n, k, n_padded, channel_instance;
  ivec4 packed_instance;
  Divisor rows_by[3], instances_by[3];
  float alpha, a, b;
};
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer GemmRecords { GemmRecord v; TAIL_RECORD };
