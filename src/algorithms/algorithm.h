// Algorithms, device-free: an anchor call (a Problem on given operands) becomes Stages. Which algorithm runs is the planner's
// choice by cost; each can be forced by name.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "algorithms/problem.h"
#include "families/gemm/stored_weights.h"

namespace sparkle {

// A Problem on operands of known layouts. Inputs: x, w (or a, b), then the epilogue's operands.
struct AnchorCall {
  Problem problem;
  std::vector<TensorDesc> inputs;
  TensorDesc output;
  std::optional<WeightFit> fit{};  // of operand 1 in types of 16 bits; none: it is not constant
};

// A Stage and which operands of the call it works on: index i < inputs is input i, `inputs` is the output, above that are the
// algorithm's temporaries. Descs inside the stage may be parts (views) of the operands.
struct StageUse {
  Stage stage;
  std::vector<int> inputs, outputs;
};
struct StagePlan {
  std::vector<StageUse> stages;
  std::vector<TensorDesc> temporaries;
};

struct Algorithm {
  std::string_view name;  // "gemm", "depthwise", ... : what --algorithm takes
  std::string_view note;
  // Reason::none where it can support the call.
  Reason (*applies)(const AnchorCall& call);
  StagePlan (*stages)(const AnchorCall& call);
  // Bound of max |error| / max |output| against double precision that calibration found for inputs and weights of no
  // preferred sign; 0: that of any sum in fp32.
  double (*error)(const AnchorCall& call) = nullptr;
  // Of the gemm family's variants it takes those that keep weights in this type.
  DType weights = DType::f32;
  // Right only for finite values of moderate size: a transform of tiles makes NaN or infinity of outputs whose own windows hold
  // none, operands of f16 end at 65504, tiles of bf16 multiply zeros by weights of other sums, and columns of zeros are
  // multiplied by weights too.
  bool finite_only = false;

  double error_of(const AnchorCall& call) const { return error ? error(call) : 0; }
};

// All algorithms, in the order in which ties are broken.
std::span<const Algorithm> algorithms();
const Algorithm* algorithm_named(std::string_view name);

}  // namespace sparkle
