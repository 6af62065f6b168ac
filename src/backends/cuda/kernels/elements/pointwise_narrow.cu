// Interpreters of pointwise programs some of whose operands have elements of fewer than 16 bits.
#include "backends/cuda/kernels/elements/pointwise.cuh"

using namespace sparkle::cuda;

SPARKLE_KERNEL(sparkle_pointwise_narrow_f32, PointwiseRecord, kPointwiseThreads, 4) { run_program<float, true>(record); }
SPARKLE_KERNEL(sparkle_pointwise_narrow_f64, PointwiseRecord, kPointwiseThreads, 4) { run_program<double, true>(record); }
SPARKLE_KERNEL(sparkle_pointwise_narrow_i64, PointwiseRecord, kPointwiseThreads, 4) { run_program<int64_t, true>(record); }
SPARKLE_KERNEL(sparkle_pointwise_narrow_u64, PointwiseRecord, kPointwiseThreads, 4) { run_program<uint64_t, true>(record); }
