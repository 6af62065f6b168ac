// Operators that others express once shapes are known (graph/composed), and those of optional values that are known to be
// there.
#include <algorithm>

#include "onnx/node.h"
#include "onnx/tensor_proto.h"

namespace sparkle {
namespace {

OpParams read_linear_attention(Node& node) {
  LinearAttentionOp op;
  op.query_heads = node.integer("q_num_heads", 0), op.key_heads = node.integer("kv_num_heads", 0);
  const std::string rule = node.text("update_rule", "gated_delta");
  if (rule != "linear" && rule != "gated" && rule != "delta" && rule != "gated_delta")
    return UnknownOp{"its attribute 'update_rule' is '" + rule + "'"};
  op.gated = rule.starts_with("gated"), op.delta = rule.ends_with("delta");
  if (const double scale = node.real("scale", 0); scale != 0) op.scale = scale;
  node.ignore("chunk_size");  // how others compute the same
  if (op.query_heads < 1 || op.key_heads < 1 || op.query_heads % op.key_heads)
    node.fail(Reason::bad_model,
              "has " + std::to_string(op.query_heads) + " heads of queries for " + std::to_string(op.key_heads) + " of keys");
  return ComposedOp{op};
}

OpParams read_causal_conv(Node& node) {
  const std::string activation = node.text("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    return UnknownOp{"its attribute 'activation' is '" + activation + "'"};
  return ComposedOp{CausalConvOp{activation != "none"}};
}

template <bool kSoftmax>
OpParams read_loss(Node& node) {
  LossOp op;
  op.softmax = kSoftmax;
  const std::string reduction = node.text("reduction", "mean");
  if (reduction != "none" && reduction != "sum" && reduction != "mean")
    return UnknownOp{"its attribute 'reduction' is '" + reduction + "'"};
  op.reduction = reduction == "none"  ? LossOp::Reduction::none
                 : reduction == "sum" ? LossOp::Reduction::sum
                                      : LossOp::Reduction::mean;
  if (node.has("ignore_index")) op.ignored = node.integer("ignore_index", 0);
  return ComposedOp{op};
}

OpParams read_reverse_sequence(Node& node) {
  return ComposedOp{ReverseSequenceOp{node.integer("time_axis", 0), node.integer("batch_axis", 1)}};
}

OpParams read_tensor_scatter(Node& node) {
  const std::string mode = node.text("mode", "linear");
  if (mode != "linear" && mode != "circular") return UnknownOp{"its attribute 'mode' is '" + mode + "'"};
  return ComposedOp{TensorScatterOp{node.integer("axis", -2), mode == "circular"}};
}

OpParams read_cum_prod(Node& node) { return ComposedOp{CumProdOp{node.flag("exclusive", false), node.flag("reverse", false)}}; }

OpParams read_max_unpool(Node& node) {
  if (!node.has("kernel_shape")) node.fail(Reason::bad_model, "lacks its attribute 'kernel_shape'");
  return ComposedOp{MaxUnpoolOp{node.dims("kernel_shape"), node.dims("strides"), node.dims("pads")}};
}

OpParams read_columns_to_image(Node& node) {
  return ComposedOp{ColumnsToImageOp{node.dims("strides"), node.dims("dilations"), node.dims("pads")}};
}

OpParams read_affine_grid(Node& node) { return ComposedOp{AffineGridOp{node.flag("align_corners", false)}}; }

OpParams read_eye_like(Node& node) {
  EyeLikeOp op;
  constexpr int64_t kMost = int64_t{1} << 32;
  op.diagonal = std::clamp(node.integer("k", 0), -kMost, kMost);
  if (!node.has("dtype")) return ComposedOp{op};
  const int type = static_cast<int>(std::clamp<int64_t>(node.integer("dtype", 1), 0, 1000));
  op.dtype = dtype_from_onnx(type);
  if (!op.dtype) return UnknownOp{"its attribute 'dtype' is " + onnx_type_name(type)};
  return ComposedOp{op};
}

// An optional value that a tensor was made is that tensor.
OpParams read_optional(Node& node) {
  node.ignore("type");
  if (!node.given(0)) return UnknownOp{"it makes an optional value without an element"};
  return PointwiseNode{PointwiseOp::identity};
}
OpParams read_optional_element(Node& node) {
  if (!node.given(0)) return UnknownOp{"its optional value has no element"};
  return PointwiseNode{PointwiseOp::identity};
}
OpParams read_optional_has_element(Node& node) {
  node.define(HostTensor::of(DType::boolean, {}, std::vector<uint8_t>{node.given(0)}));
  return {};
}

constexpr OperatorRow kRows[] = {
    {"LinearAttention", read_linear_attention, 3},
    {"CausalConvWithState", read_causal_conv, 2},
    {"NegativeLogLikelihoodLoss", read_loss<false>, 2},
    {"SoftmaxCrossEntropyLoss", read_loss<true>, 2},
    {"ReverseSequence", read_reverse_sequence, 2},
    {"TensorScatter", read_tensor_scatter, 2},
    {"CumProd", read_cum_prod, 2},
    {"MaxUnpool", read_max_unpool, 2},
    {"Col2Im", read_columns_to_image, 3},
    {"AffineGrid", read_affine_grid, 2},
    {"EyeLike", read_eye_like, 1},
    {"Optional", read_optional, 0},
    {"OptionalGetElement", read_optional_element, 0},
    {"OptionalHasElement", read_optional_has_element, 0},
};
}  // namespace

std::span<const OperatorRow> composed_operators() { return kRows; }

}  // namespace sparkle
