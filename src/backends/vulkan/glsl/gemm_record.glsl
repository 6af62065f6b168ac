// A gemm stage as its kernels see it.
#include "gemm_constants.inc"
#include "post_op.glsl"
#include "divide.glsl"
struct GemmRecord {
#include "record_fields.inc"
#include "gemm_record.inc"
};
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer GemmRecords { GemmRecord v; POST_OP_RECORD };
