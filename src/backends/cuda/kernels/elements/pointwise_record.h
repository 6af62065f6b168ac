// What the interpreters of pointwise programs are launched with: operands with their strides along merged axes, and the program
// over a few slots of values. Numbers of operations and types are those of families/pointwise/ops.inc and base/dtype.h.
#pragma once

#include "backends/cuda/kernels/gemm_record.h"

namespace sparkle::cuda {

inline constexpr int kPointwiseInputs = 12, kPointwiseSteps = 64, kPointwiseSlots = 12, kPointwiseAxes = 8;
inline constexpr int kPointwiseThreads = 128, kPointwiseEach = 4;  // elements of a thread, kPointwiseThreads apart
inline constexpr uint8_t kPointwiseLoad = 255;                     // an operand's value into a slot

struct PointwiseStep {
  uint8_t op = 0, to = 0, x = 0, y = 0, z = 0;  // x of kPointwiseLoad: the operand
  double a = 0, b = 0;
};

struct PointwiseRecord {
  const void* x[kPointwiseInputs] = {};
  void* y = nullptr;
  uint32_t count = 0;
  int32_t rank = 0;  // of axes, the innermost last
  Divisor size[kPointwiseAxes];
  int32_t strides[kPointwiseInputs + 1][kPointwiseAxes] = {};  // the last is y's
  uint8_t type[kPointwiseInputs + 1] = {};
  uint8_t arithmetic = 0;  // the type that is computed in
  uint8_t steps = 0;
  uint8_t result = 0;  // slot
  PointwiseStep step[kPointwiseSteps];
};

}  // namespace sparkle::cuda
