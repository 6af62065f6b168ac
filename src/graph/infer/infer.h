// Shape inference of one operator: the rules behind bind() and evaluate(). Each rule reads the shapes and constants of its
// inputs, resolves the fields that ops.h marks [resolved], drops the inputs they came from and sets its outputs' types and
// shapes. Rules are those of the ONNX operator specification; running a rule on a resolved operator changes nothing.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"

namespace sparkle {

__extension__ typedef __int128 WideInt;  // sizes before their check for overflow

// What a rule sees of the graph.
class InferContext {
 public:
  InferContext(Graph& graph, Op& op) : graph_(graph), op_(op) {}

  Op& op() { return op_; }
  Graph& graph() { return graph_; }
  int inputs() const { return static_cast<int>(op_.inputs.size()); }
  bool given(int i) const { return i < inputs() && op_.inputs[static_cast<size_t>(i)] != kAbsent; }
  const GraphTensor& in(int i) const { return graph_.tensor(op_.inputs[static_cast<size_t>(i)]); }
  const Dims& shape(int i) const { return in(i).shape; }
  DType type(int i) const { return in(i).dtype; }
  const HostTensor* constant(int i) const { return given(i) && in(i).constant ? &*in(i).constant : nullptr; }

  // "Node 'conv1' (Conv): <what>."
  Error fail(Reason reason, const std::string& what) const;
  // "'x' of shape 1x3x8x8"
  std::string describe(int i) const;
  // Fails unless between `least` and `most` inputs are there and the first `least` are given.
  Status expect(int least, int most) const;
  Status expect_rank(int i, int rank) const;
  // The integers of a constant input; operator_not_served where it is not constant.
  Result<std::vector<int64_t>> integers(int i, const char* what) const;
  Result<std::vector<double>> numbers(int i, const char* what) const;
  // As many as fit a Dims.
  Result<Dims> dims(int i, const char* what) const;
  Result<int> axis(int64_t axis, int rank) const;
  // Keeps the first `count` inputs: the others have been resolved into the operator.
  void keep_inputs(int count);
  // Sets type and shape of an output (if the model names it); sizes are checked.
  Status set(int i, DType type, const Dims& shape);
  // A size computed without overflow, negative ones and those beyond what can be addressed refused.
  Result<int64_t> size(WideInt value, const std::string& what) const;

 private:
  Result<const HostTensor*> short_list(int i, const char* what) const;
  Graph& graph_;
  Op& op_;
};

// Dispatches on the operator's parameters. The rules, by theme: infer_window.cc, infer_math.cc, infer_normalize.cc,
// infer_attention.cc, infer_sample.cc, infer_move.cc, infer_index.cc, infer_quantize.cc, infer_reshape.cc, infer_resize.cc.
Status infer(InferContext& context);

// The rules of convolutions and matrix products without their checks of inputs' number and types: the shape of y for x and w (a
// and b) at inputs 0 and 1 and a bias at 2.
Result<Dims> infer_convolution(InferContext& c, ConvOp& op);
Result<Dims> infer_product(InferContext& c, const MatMulOp& op);

// The type of what QuantizeLinear makes: that of its zero point, else of its attribute. Rules and rewrites ask here.
DType quantized_type(const QuantizeOp& op, std::optional<DType> zero_point);

// Element-wise operators whose result is a truth value whatever their inputs are.
bool gives_boolean(PointwiseOp op);

// Shape that a and b broadcast to by numpy's rules, or nothing.
std::optional<Dims> broadcast(const Dims& a, const Dims& b);
// Bytes of a shape whose product may overflow; nothing beyond 2^47, where axes of size 0 count as 1: strides are products of
// the other axes.
std::optional<int64_t> checked_bytes(DType type, const Dims& shape);

// Rules, one per alternative of OpParams.
Status infer_rule(InferContext& c, UnknownOp& op);
Status infer_rule(InferContext& c, ConvOp& op);
Status infer_rule(InferContext& c, PoolOp& op);
Status infer_rule(InferContext& c, MatMulOp& op);
Status infer_rule(InferContext& c, PointwiseNode& op);
Status infer_rule(InferContext& c, CastOp& op);
Status infer_rule(InferContext& c, BatchNormalizationOp& op);
Status infer_rule(InferContext& c, InstanceNormalizationOp& op);
Status infer_rule(InferContext& c, LayerNormalizationOp& op);
Status infer_rule(InferContext& c, GroupNormalizationOp& op);
Status infer_rule(InferContext& c, MeanVarianceNormalizationOp& op);
Status infer_rule(InferContext& c, LpNormalizationOp& op);
Status infer_rule(InferContext& c, LocalResponseOp& op);
Status infer_rule(InferContext& c, ReduceOp& op);
Status infer_rule(InferContext& c, SoftmaxOp& op);
Status infer_rule(InferContext& c, AttentionOp& op);
Status infer_rule(InferContext& c, RotaryEmbeddingOp& op);
Status infer_rule(InferContext& c, ConcatOp& op);
Status infer_rule(InferContext& c, SplitOp& op);
Status infer_rule(InferContext& c, SliceOp& op);
Status infer_rule(InferContext& c, ReshapeOp& op);
Status infer_rule(InferContext& c, TransposeOp& op);
Status infer_rule(InferContext& c, ExpandOp& op);
Status infer_rule(InferContext& c, TileOp& op);
Status infer_rule(InferContext& c, PadOp& op);
Status infer_rule(InferContext& c, ResizeOp& op);
Status infer_rule(InferContext& c, GridSampleOp& op);
Status infer_rule(InferContext& c, DeformConvOp& op);
Status infer_rule(InferContext& c, DepthToSpaceOp& op);
Status infer_rule(InferContext& c, SpaceToDepthOp& op);
Status infer_rule(InferContext& c, GatherOp& op);
Status infer_rule(InferContext& c, QuantizeOp& op);
Status infer_rule(InferContext& c, DequantizeOp& op);
Status infer_rule(InferContext& c, DynamicQuantizeOp& op);
Status infer_rule(InferContext& c, QuantizedConvOp& op);
Status infer_rule(InferContext& c, QuantizedMatMulOp& op);
Status infer_rule(InferContext& c, QuantizedAddOp& op);
Status infer_rule(InferContext& c, QuantizedAverageOp& op);
Status infer_rule(InferContext& c, ShapeOp& op);
Status infer_rule(InferContext& c, SizeOp& op);
Status infer_rule(InferContext& c, ConstantOfShapeOp& op);
Status infer_rule(InferContext& c, RangeOp& op);
Status infer_rule(InferContext& c, ArgOp& op);
Status infer_rule(InferContext& c, TopKOp& op);
Status infer_rule(InferContext& c, CumSumOp& op);
Status infer_rule(InferContext& c, TriluOp& op);
Status infer_rule(InferContext& c, GatherElementsOp& op);
Status infer_rule(InferContext& c, GatherNDOp& op);
Status infer_rule(InferContext& c, ScatterElementsOp& op);
Status infer_rule(InferContext& c, ScatterNDOp& op);
Status infer_rule(InferContext& c, OneHotOp& op);
Status infer_rule(InferContext& c, CenterCropPadOp& op);
Status infer_rule(InferContext& c, EinsumOp& op);
Status infer_rule(InferContext& c, NonMaxSuppressionOp& op);
Status infer_rule(InferContext& c, HostOp& op);
Status infer_rule(InferContext& c, ComposedOp& op);

}  // namespace sparkle
