// How algorithms cut a call into stages; shared by the files of this folder.
#pragma once

#include "algorithms/algorithm.h"

namespace sparkle {

// All operands of the call straight into one stage.
StageUse whole_call(const AnchorCall& call, StageParams params);

// 3x3 convolutions of stride 1 by transforms of tiles of kTile x kTile outputs.
Reason winograd_applies(const AnchorCall& call);
template <int kTile>
StagePlan winograd_stages(const AnchorCall& call);
template <int kTile>
double winograd_error(const AnchorCall& call);

// A product on a copy of the input between columns of zeros.
Reason padded_applies(const AnchorCall& call);
StagePlan padded_stages(const AnchorCall& call);

// Constant weights stored in 16 bits.
template <DType kStored>
Fit fit_in(const AnchorCall& call) {
  static_assert(kStored == DType::f16 || kStored == DType::bf16);
  if (!call.fit) return Fit::never;
  return kStored == DType::f16 ? call.fit->f16 : call.fit->bf16;
}
template <DType kStored>
Reason stored_applies(const AnchorCall& call);
template <DType kStored>
double stored_error(const AnchorCall& call);

// Convolutions with any filter by fast Fourier transforms.
Reason fft_applies(const AnchorCall& call);
StagePlan fft_stages(const AnchorCall& call);
double fft_error(const AnchorCall& call);

// Sums of products whose operands are rounded to 16 bits, for matrix units.
Reason fp16_applies(const AnchorCall& call);
StagePlan fp16_stages(const AnchorCall& call);
double fp16_error(const AnchorCall& call);
Reason bf16_applies(const AnchorCall& call);
StagePlan bf16_stages(const AnchorCall& call);

// The same of operators on f32 with both operands rounded to TF32.
Reason tf32_applies(const AnchorCall& call);
StagePlan tf32_stages(const AnchorCall& call);
double tf32_error(const AnchorCall& call);

// The same by vectors, runs of kShortRun products added in 16 bits.
Reason short_sums_applies(const AnchorCall& call);
double short_sums_error(const AnchorCall& call);

// Operators on f16 and bf16 are computed in f32 by algorithms without 16-bit products.
inline bool computed_in_f32(const Problem& problem) {
  return problem.dtype == "f32" || problem.dtype == "f16" || problem.dtype == "bf16";
}

// A transposed convolution as ordinary ones of stride 1: one per phase of the stride (and per group).
StagePlan transposed_stages(const AnchorCall& call);
// At most how many that are.
double transposed_stage_count(const Problem& problem);

}  // namespace sparkle
