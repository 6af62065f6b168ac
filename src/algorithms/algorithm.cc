#include "algorithms/algorithm.h"

#include <array>

#include "algorithms/stages.h"
#include "families/depthwise/depthwise.h"
#include "families/direct/direct.h"
#include "families/gemm/gemm.h"
#include "families/grouped/grouped.h"

namespace sparkle {
namespace {

// A stage for each group and phase of a transposed convolution: beyond these a plan is longer than the work it plans.
constexpr double kMostStages = 16384;

Reason gemm_applies(const AnchorCall& call) {
  if (call.problem.kind != ProblemKind::conv_transpose || transposed_stage_count(call.problem) <= kMostStages)
    return Reason::none;
  return Reason::filter_not_served;
}

StagePlan gemm_stages(const AnchorCall& call) {
  if (call.problem.kind == ProblemKind::conv_transpose) return transposed_stages(call);
  GemmParams params;
  params.loader = call.problem.kind == ProblemKind::matmul ? Loader::dense : Loader::window;
  params.groups = call.problem.groups;
  params.window = call.problem.window;
  params.epilogue = call.problem.epilogue;
  return {{whole_call(call, params)}, {}};
}

Reason depthwise_applies(const AnchorCall& call) {
  const Problem& p = call.problem;
  if (p.kind != ProblemKind::conv) return Reason::not_this_family;
  if (p.groups != p.c || p.groups == 1) return Reason::groups_not_served;
  return Reason::none;
}

StagePlan depthwise_stages(const AnchorCall& call) {
  DepthwiseParams params;
  params.window = call.problem.window;
  params.epilogue = call.problem.epilogue;
  return {{whole_call(call, params)}, {}};
}

Reason grouped_applies(const AnchorCall& call) {
  const Problem& p = call.problem;
  if (p.kind != ProblemKind::conv || p.rank != 2) return Reason::not_this_family;
  if (!computed_in_f32(p)) return Reason::type_not_served;
  const int64_t depth = p.groups > 1 ? p.c / p.groups : 0;
  return p.c == p.k && (depth == 2 || depth == 4 || depth == 8 || depth == 16) ? Reason::none : Reason::groups_not_served;
}

StagePlan grouped_stages(const AnchorCall& call) {
  GroupedParams params;
  params.groups = call.problem.groups;
  params.window = call.problem.window;
  params.epilogue = call.problem.epilogue;
  return {{whole_call(call, params)}, {}};
}

Reason direct_applies(const AnchorCall& call) {
  const Problem& p = call.problem;
  if (p.kind != ProblemKind::conv || p.rank != 2) return Reason::not_this_family;
  if (!computed_in_f32(p)) return Reason::type_not_served;
  // Groups of a few maps would leave most of a vector idle.
  if (p.groups > 1 && p.k / p.groups < 4) return Reason::groups_not_served;
  return p.c / p.groups <= most_direct_channels(p.window) ? Reason::none : Reason::filter_not_served;
}

StagePlan direct_stages(const AnchorCall& call) {
  DirectParams params;
  params.groups = call.problem.groups;
  params.window = call.problem.window;
  params.epilogue = call.problem.epilogue;
  return {{whole_call(call, params)}, {}};
}

constexpr std::array<Algorithm, 15> kAlgorithms = {{
    {"depthwise", "every channel has filters of its own", depthwise_applies, depthwise_stages},
    {"grouped", "several groups of a few channels in one vector", grouped_applies, grouped_stages},
    {"gemm", "implicit matrix product: no im2col buffer", gemm_applies, gemm_stages},
    {"gemm_padded", "the same on a copy of the input between columns of zeros, for small planes", padded_applies, padded_stages,
     nullptr, DType::f32, true},
    {"gemm_f16", "implicit matrix product with weights stored as f16 and widened as they are read", stored_applies<DType::f16>,
     gemm_stages, stored_error<DType::f16>, DType::f16},
    {"gemm_bf16", "the same with weights stored as bf16", stored_applies<DType::bf16>, gemm_stages, stored_error<DType::bf16>,
     DType::bf16},
    {"direct", "few input channels: whole rows of outputs from padded rows of inputs", direct_applies, direct_stages},
    {"winograd2", "3x3 by tiles of 2x2 outputs: 2.25 times fewer products", winograd_applies, winograd_stages<2>,
     winograd_error<2>, DType::f32, true},
    {"winograd4", "3x3 by tiles of 4x4 outputs: 4 times fewer products", winograd_applies, winograd_stages<4>,
     winograd_error<4>, DType::f32, true},
    {"winograd6", "3x3 by tiles of 6x6 outputs: 5 times fewer products", winograd_applies, winograd_stages<6>,
     winograd_error<6>, DType::f32, true},
    {"matrix_f16", "the product with both operands rounded to f16, for matrix units", fp16_applies, fp16_stages, fp16_error,
     DType::f32, true},
    {"matrix_bf16", "the product of operands that are bf16 in the model, for matrix units", bf16_applies, bf16_stages, nullptr,
     DType::f32, true},
    {"matrix_tf32", "the product with both operands rounded to TF32, for matrix units that read fp32", tf32_applies,
     tf32_stages, tf32_error},
    {"sums_f16", "the product with both operands rounded to f16, by vectors of f16, which add eight products at a time",
     short_sums_applies, fp16_stages, short_sums_error, DType::f16, true},
    {"fft", "large filters by fast Fourier transforms of tiles", fft_applies, fft_stages, fft_error, DType::f32, true},
}};

}  // namespace

StageUse whole_call(const AnchorCall& call, StageParams params) {
  StageUse use;
  use.stage = {std::move(params), call.inputs, {call.output}};
  for (size_t i = 0; i < call.inputs.size(); ++i) use.inputs.push_back(static_cast<int>(i));
  use.outputs = {static_cast<int>(call.inputs.size())};
  return use;
}

std::span<const Algorithm> algorithms() { return kAlgorithms; }

const Algorithm* algorithm_named(std::string_view name) {
  for (const Algorithm& algorithm : kAlgorithms)
    if (algorithm.name == name) return &algorithm;
  return nullptr;
}

}  // namespace sparkle
