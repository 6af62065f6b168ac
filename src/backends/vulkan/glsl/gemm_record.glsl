// A gemm stage as its kernels see it.
#include "gemm_constants.inc"
#include "tail.glsl"
#include "divide.glsl"
#define VECTOR(name) ivec4 name;
#define VECTORS(name, count) ivec4 name[count];
#define INTEGER(name) int name;
#define DIVISORS(name, count) Divisor name[count];
#define REAL(name) float name;
struct GemmRecord {
#include "gemm_record.inc"
};
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer GemmRecords { GemmRecord v; TAIL_RECORD };
