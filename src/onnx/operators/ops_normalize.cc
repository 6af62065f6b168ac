// Matrix products, normalisation and softmax: inference forms only.
#include "onnx/node.h"

namespace sparkle {
namespace {

OpParams read_matmul(Node&) { return MatMulOp{}; }

OpParams read_gemm(Node& node) {
  MatMulOp op;
  op.whole_c = node.opset < 7 && !node.flag("broadcast", false);
  op.gemm = true;
  op.transpose_a = node.flag("transA", false);
  op.transpose_b = node.flag("transB", false);
  op.alpha = node.real("alpha", 1);
  op.beta = node.real("beta", 1);
  return op;
}

// The mean over the batch and all places, of each channel: as [C], or as [1, C, 1, ...].
TensorId mean_of_channels(Node& node, TensorId x, bool keep_dims) {
  ReduceOp places;
  places.kind = ReduceKind::mean;
  places.axes = {2};
  places.to_the_end = true;
  places.keep_dims = keep_dims;
  ReduceOp batch = places;
  batch.axes = {0};
  batch.to_the_end = false;
  return node.step(batch, {node.step(places, {x})});
}

// The training form normalises by what it finds in x; weights that are standardised are exported so.
OpParams read_batch_normalization(Node& node) {
  BatchNormalizationOp op{node.real("epsilon", 1e-5)};
  const double momentum = node.real("momentum", 0.9);
  if (node.flag("training_mode", false)) {
    for (int i = 1; i < static_cast<int>(node.outputs.size()); ++i)
      if (node.output_used(i) && (node.opset < 14 || i > 2))
        return UnknownOp{"its output " + std::to_string(i) + " belongs to the training form"};
    const TensorId x = node.inputs[0];
    const TensorId centred = node.step(PointwiseNode{PointwiseOp::sub}, {x, mean_of_channels(node, x, true)});
    const TensorId squares = node.step(PointwiseNode{PointwiseOp::mul}, {centred, centred});
    const TensorId found[] = {mean_of_channels(node, x, false), mean_of_channels(node, squares, false)};
    for (int i = 1; i < 3; ++i) {  // the statistics so far, moved on a little towards what was found
      const auto at = static_cast<size_t>(i);
      if (node.output_used(i)) {
        const TensorId kept = node.step(PointwiseNode{PointwiseOp::affine, momentum, 0}, {node.inputs[at + 2]});
        const TensorId moved = node.step(PointwiseNode{PointwiseOp::affine, 1 - momentum, 0}, {found[i - 1]});
        node.emit(PointwiseNode{PointwiseOp::add}, {kept, moved}, {node.outputs[at]}, ":statistics" + std::to_string(i));
      }
      node.inputs[at + 2] = found[i - 1];
    }
    node.outputs.resize(1);
    return op;
  }
  if (node.opset < 7 && !node.flag("is_test", false)) return UnknownOp{"its attribute 'is_test' is 0: the training form"};
  if (!node.flag("spatial", true)) return UnknownOp{"its attribute 'spatial' is 0: statistics per element"};
  for (int i = 1; i < static_cast<int>(node.outputs.size()); ++i)
    if (node.output_used(i)) return UnknownOp{"its output " + std::to_string(i) + " belongs to the training form"};
  node.outputs.resize(1);
  return op;
}

OpParams read_instance_normalization(Node& node) { return InstanceNormalizationOp{node.real("epsilon", 1e-5)}; }

// The mean over all axes from `axis` on.
TensorId mean_from(Node& node, int64_t axis, TensorId x) {
  ReduceOp op;
  op.kind = ReduceKind::mean;
  op.axes = {axis};
  op.to_the_end = true;
  return node.step(op, {x});
}

// 1 / sqrt(mean(x * x) + epsilon)
OpParams inverse_rms(Node& node, TensorId x, int64_t axis, double epsilon, TensorId& root) {
  const TensorId squares = node.step(PointwiseNode{PointwiseOp::mul}, {x, x});
  const TensorId mean = mean_from(node, axis, squares);
  const TensorId shifted = node.step(PointwiseNode{PointwiseOp::affine, 1, epsilon}, {mean});
  root = node.step(PointwiseNode{PointwiseOp::sqrt}, {shifted});
  return PointwiseNode{PointwiseOp::reciprocal};
}

OpParams read_layer_normalization(Node& node) {
  const int64_t stash = node.integer("stash_type", 1);
  LayerNormalizationOp op{node.integer("axis", -1), node.real("epsilon", 1e-5)};
  // The statistics, computed apart: in f32 whatever x is, and given in the type that stash_type numbers as ONNX does.
  if (node.output_used(1) || node.output_used(2)) {
    if (stash != 1 && stash != 16)
      return UnknownOp{"its statistics are used and its attribute 'stash_type' is " + std::to_string(stash)};
    const CastOp stored{stash == 16 ? DType::bf16 : DType::f32};
    const TensorId x = node.step(CastOp{DType::f32}, {node.inputs[0]});
    const TensorId mean = mean_from(node, op.axis, x);
    if (node.output_used(1)) node.emit(stored, {mean}, {node.outputs[1]}, ":mean");
    if (node.output_used(2)) {
      const TensorId centred = node.step(PointwiseNode{PointwiseOp::sub}, {x, mean});
      TensorId root = kAbsent;
      OpParams reciprocal = inverse_rms(node, centred, op.axis, op.epsilon, root);
      node.emit(stored, {node.step(std::move(reciprocal), {root})}, {node.outputs[2]}, ":deviation");
    }
  }
  node.outputs.resize(1);
  return op;
}

// x / sqrt(mean(x * x) + epsilon) * scale
OpParams read_rms_normalization(Node& node) {
  node.ignore("stash_type");
  return LayerNormalizationOp{node.integer("axis", -1), node.real("epsilon", 1e-5), false};
}

OpParams read_mean_variance_normalization(Node& node) {
  return MeanVarianceNormalizationOp{node.has("axes") ? node.dims("axes") : Dims{0, 2, 3}};
}

OpParams read_lp_normalization(Node& node) {
  const int64_t p = node.integer("p", 2);
  if (p != 1 && p != 2) return UnknownOp{"its attribute 'p' is " + std::to_string(p)};
  return LpNormalizationOp{node.integer("axis", -1), p};
}

OpParams read_group_normalization(Node& node) {
  node.ignore("stash_type");
  GroupNormalizationOp op{node.integer("num_groups", 0), node.real("epsilon", 1e-5)};
  if (op.groups <= 0) node.fail(Reason::bad_model, "has num_groups " + std::to_string(op.groups));
  return op;
}

OpParams read_lrn(Node& node) {
  LocalResponseOp op{node.integer("size", 0), node.real("alpha", 1e-4), node.real("beta", 0.75), node.real("bias", 1)};
  if (op.size <= 0) node.fail(Reason::bad_model, "has size " + std::to_string(op.size));
  return op;
}

template <bool logarithm>
OpParams read_softmax(Node& node) {
  const bool old = node.opset < 13;
  return SoftmaxOp{node.integer("axis", old ? 1 : -1), logarithm, old};
}

constexpr OperatorRow kRows[] = {
    {"MatMul", read_matmul, 2},
    {"Gemm", read_gemm, 2},
    {"BatchNormalization", read_batch_normalization, 5},
    {"InstanceNormalization", read_instance_normalization, 3},
    {"LayerNormalization", read_layer_normalization, 2},
    {"RMSNormalization", read_rms_normalization, 2},
    {"MeanVarianceNormalization", read_mean_variance_normalization, 1},
    {"LpNormalization", read_lp_normalization, 1},
    {"GroupNormalization", read_group_normalization, 3},
    {"LRN", read_lrn, 1},
    {"Softmax", read_softmax<false>, 1},
    {"LogSoftmax", read_softmax<true>, 1},
};
}  // namespace

std::span<const OperatorRow> normalize_operators() { return kRows; }

}  // namespace sparkle
