// Operators that others express once shapes are known, as those others.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace sparkle {

// The operators that compute `op`, a ComposedOp whose inputs' shapes are known; they write its outputs. Errors: bad_model,
// bad_shape, operator_not_served naming the node.
Result<std::vector<Op>> expand_composed(Graph& graph, const Op& op);

// Why an operator cannot be composed whatever its other inputs are: an image of so many axes, frames of so many numbers with
// `parts` parts each.
std::string image_of_too_many_axes(size_t axes);
std::optional<std::string> frames_beyond_limits(int64_t length, int64_t parts, bool one_sided);

// What the functions that compose an operator write with. Types and shapes of what they make are inferred when it is placed.
class Composition {
 public:
  Composition(Graph& graph, const Op& op) : graph_(graph), op_(op) {}

  bool given(size_t i) const { return i < op_.inputs.size() && op_.inputs[i] != kAbsent; }
  TensorId in(size_t i) const { return given(i) ? op_.inputs[i] : kAbsent; }
  const Dims& shape(size_t i) const { return graph_.tensor(op_.inputs[i]).shape; }
  DType type(size_t i) const { return graph_.tensor(op_.inputs[i]).dtype; }
  bool wanted(size_t k) const { return k < op_.outputs.size() && op_.outputs[k] != kAbsent; }
  // The constant integers or numbers of input i; `what` names it in the error.
  Result<std::vector<int64_t>> integers(size_t i, const std::string& what) const;
  Result<std::vector<double>> numbers(size_t i, const std::string& what) const;
  Result<int64_t> integer(size_t i, const std::string& what) const;
  Result<int> axis(int64_t axis, int rank) const;
  Error fail(Reason reason, const std::string& what) const;
  Error wrong_shape(size_t i, const std::string& wanted) const;
  Status expect_rank(size_t i, int rank) const;
  Status expect_shape(size_t i, const Dims& shape) const;

  // One operator more; its result is a new tensor.
  TensorId add(OpParams params, std::vector<TensorId> inputs);
  TensorId constant(HostTensor value);
  TensorId constant(DType type, const Dims& shape, const std::vector<double>& values);
  TensorId zeros(DType type, const Dims& shape);
  TensorId places(const Dims& shape, const std::vector<int64_t>& values);  // i64
  TensorId pointwise(PointwiseOp op, std::vector<TensorId> inputs, double a = 0, double b = 0);
  TensorId reshape(TensorId x, const Dims& shape);
  TensorId transpose(TensorId x, const Dims& permutation);
  TensorId slice(TensorId x, int axis, int64_t begin, int64_t end);
  TensorId concat(std::vector<TensorId> parts, int axis);
  TensorId product(TensorId a, TensorId b);
  TensorId cast(TensorId x, DType type);
  // Output k is x.
  void give(size_t k, TensorId x);

  std::vector<Op> take() { return std::move(steps_); }

 private:
  std::string next_name() const;
  Graph& graph_;
  const Op& op_;
  std::vector<Op> steps_;
};

// By theme, each in the file of its name (compose_*.cc).
Status compose(Composition& c, const RecurrentOp& op);
Status compose(Composition& c, const LinearAttentionOp& op);
Status compose(Composition& c, const CausalConvOp& op);
Status compose(Composition& c, const DftOp& op);
Status compose(Composition& c, const StftOp& op);
Status compose(Composition& c, const WindowOp& op);
Status compose(Composition& c, const MelWeightsOp& op);
Status compose(Composition& c, const LossOp& op);
Status compose(Composition& c, const ReverseSequenceOp& op);
Status compose(Composition& c, const TensorScatterOp& op);
Status compose(Composition& c, const CumProdOp& op);
Status compose(Composition& c, const MaxUnpoolOp& op);
Status compose(Composition& c, const ColumnsToImageOp& op);
Status compose(Composition& c, const AffineGridOp& op);
Status compose(Composition& c, const EyeLikeOp& op);

}  // namespace sparkle
