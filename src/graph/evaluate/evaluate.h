// Folding: evaluation of an operator whose attributes are resolved and whose inputs are constants.
#pragma once

#include "graph/graph.h"

namespace sparkle {

// Values of the outputs of a resolved operator (shapes inferred); operator_not_served where it is left to run normally.
Result<std::vector<HostTensor>> evaluate_resolved(const Graph& graph, const Op& op);
// The outputs of a resolved operator on constants, whatever it is, by the run-time path itself: its plan, run on the reference
// backend. Absent outputs are empty. Defined in src/run/evaluate/evaluate_by_plan.cc, above this folder, since it takes planner
// and kernels; an operator that cannot be planned or run gives the error that the run would give.
Result<std::vector<HostTensor>> evaluate_by_plan(const Graph& graph, const Op& op);
// The tensors, by id, whose values decide shapes or attributes of what reads them, at whatever distance.
std::vector<bool> tensors_needed_by_value(const Graph& graph);
// What a resolved operator on constants takes of a FoldingLimit: by evaluate_resolved(), or by evaluate_by_plan().
struct FoldingCost {
  int64_t bytes = 0, work = 0;
};
FoldingCost folding_cost(const Graph& graph, const Op& op);
FoldingCost folding_cost_by_plan(const Graph& graph, const Op& op);
// Whether that is left, and each output small enough to be kept as a constant. Sizes and the like are, whatever was folded
// before.
bool worth_folding(const Op& op, const FoldingCost& cost, const FoldingLimit& left);
void take(const FoldingCost& cost, FoldingLimit& left);

// What the evaluators see: constant inputs (nullptr where absent) and the types and shapes of the outputs.
struct EvaluateContext {
  const Op& op;
  std::vector<const HostTensor*> inputs;
  std::vector<std::pair<DType, Dims>> outputs;

  const HostTensor& in(size_t i) const { return *inputs[i]; }
  Error unsupported() const;
  Error fail(Reason reason, const std::string& what) const;
};
using Values = std::vector<HostTensor>;

Result<Values> evaluate_pointwise(const EvaluateContext& c, const PointwiseNode& op);
Result<Values> evaluate_cast(const EvaluateContext& c, const CastOp& op);
Result<Values> evaluate_reduce(const EvaluateContext& c, const ReduceOp& op);
Result<Values> evaluate_concat(const EvaluateContext& c, const ConcatOp& op);
Result<Values> evaluate_split(const EvaluateContext& c, const SplitOp& op);
Result<Values> evaluate_slice(const EvaluateContext& c, const SliceOp& op);
Result<Values> evaluate_transpose(const EvaluateContext& c, const TransposeOp& op);
Result<Values> evaluate_expand(const EvaluateContext& c);
Result<Values> evaluate_tile(const EvaluateContext& c);
Result<Values> evaluate_pad(const EvaluateContext& c, const PadOp& op);
Result<Values> evaluate_gather(const EvaluateContext& c, const GatherOp& op);
Result<Values> evaluate_range(const EvaluateContext& c);

// y[i...] = x at offset + sum of i * stride, in elements of x: the loop behind every move of elements.
HostTensor strided(const HostTensor& x, const Dims& shape, const Dims& strides, int64_t offset);

}  // namespace sparkle
