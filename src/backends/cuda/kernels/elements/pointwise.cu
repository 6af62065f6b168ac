// Interpreters of pointwise programs in fp32, in double precision and on integers.
#include "backends/cuda/kernels/elements/pointwise.cuh"

using namespace sparkle::cuda;

SPARKLE_KERNEL(sparkle_pointwise_f32, PointwiseRecord, kPointwiseThreads, 4) { run_program<float>(record); }
SPARKLE_KERNEL(sparkle_pointwise_f64, PointwiseRecord, kPointwiseThreads, 4) { run_program<double>(record); }
SPARKLE_KERNEL(sparkle_pointwise_i64, PointwiseRecord, kPointwiseThreads, 4) { run_program<int64_t>(record); }
SPARKLE_KERNEL(sparkle_pointwise_u64, PointwiseRecord, kPointwiseThreads, 4) { run_program<uint64_t>(record); }
