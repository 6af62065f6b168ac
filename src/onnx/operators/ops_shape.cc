// Operators that move elements or give them another shape. What newer opsets pass as an input stays an input; what older
// ones say in attributes is filled into the parameters.
#include "onnx/node.h"

namespace sparkle {
namespace {

OpParams read_concat(Node& node) {
  if (node.opset >= 4 && !node.has("axis")) node.fail(Reason::bad_model, "lacks its attribute 'axis'");
  return ConcatOp{node.integer("axis", 1)};
}

// What opset 1 passes as sizes and axes has the type of the data.
TensorId whole_numbers(Node& node, int input) { return node.step(CastOp{DType::i64}, {node.input(input)}); }

OpParams read_split(Node& node) {
  SplitOp op;
  op.axis = node.integer("axis", 0);
  const std::vector<int64_t> sizes = node.integers("split");
  if (node.opset < 2 && node.given(1)) {
    if (!sizes.empty()) node.fail(Reason::bad_model, "has its sizes twice, as attribute and as input");
    node.inputs[1] = whole_numbers(node, 1);
  }
  if (sizes.size() > static_cast<size_t>(kMaxRank)) {
    // More parts than a short list holds: the sizes become an input, as in newer opsets.
    if (node.given(1)) node.fail(Reason::bad_model, "has its sizes twice, as attribute and as input");
    GraphTensor tensor;
    tensor.name = node.name() + ":sizes";
    tensor.dtype = DType::i64;
    tensor.shape = {static_cast<int64_t>(sizes.size())};
    tensor.known = tensor.rank_known = true;
    tensor.constant = HostTensor::of(DType::i64, tensor.shape, sizes);
    node.inputs.resize(1);
    node.inputs.push_back(node.import().graph.add(std::move(tensor)));
  } else {
    op.sizes = Dims(std::span<const int64_t>(sizes));
  }
  const int64_t parts = node.integer("num_outputs", static_cast<int64_t>(node.outputs.size()));
  if (parts != static_cast<int64_t>(node.outputs.size()) || (!sizes.empty() && sizes.size() != node.outputs.size()))
    node.fail(Reason::bad_model, "has " + std::to_string(node.outputs.size()) + " outputs but splits into another number");
  return op;
}

OpParams read_slice(Node& node) {
  SliceOp op;
  if (node.opset >= 10) {
    if (!node.given(1) || !node.given(2)) node.fail(Reason::bad_model, "lacks its inputs 'starts' and 'ends'");
    return op;
  }
  op.starts = node.dims("starts");
  op.ends = node.dims("ends");
  op.axes = node.dims("axes");
  if (op.axes.empty())
    for (int i = 0; i < op.starts.size(); ++i) op.axes.push_back(i);
  op.steps = Dims::filled(op.starts.size(), 1);
  if (op.starts.size() != op.ends.size() || op.axes.size() != op.starts.size() || op.starts.empty())
    node.fail(Reason::bad_model, "has starts, ends and axes of different lengths");
  return op;
}

OpParams read_reshape(Node& node) {
  ReshapeOp op;
  op.allow_zero = node.flag("allowzero", false);
  if (node.opset < 5) {
    op.target = node.dims("shape");
    op.target_given = true;
  } else if (!node.given(1)) {
    node.fail(Reason::bad_model, "lacks its input 'shape'");
  }
  return op;
}

OpParams read_flatten(Node& node) { return ReshapeOp{ReshapeOp::Form::flatten, {node.integer("axis", 1)}, false, true}; }

template <ReshapeOp::Form form>
OpParams read_squeeze(Node& node) {
  ReshapeOp op{form, {}, false, false};
  op.target_given = node.has("axes");
  op.target = node.dims("axes");
  if (form == ReshapeOp::Form::unsqueeze && !op.target_given && !node.given(1))
    node.fail(Reason::bad_model, "does not say which axes");
  if (op.target_given && node.given(1)) node.fail(Reason::bad_model, "has its axes twice, as attribute and as input");
  return op;
}

OpParams read_transpose(Node& node) { return TransposeOp{node.dims("perm")}; }
OpParams read_expand(Node&) { return ExpandOp{}; }

OpParams read_tile(Node& node) {
  if (node.opset >= 6) return TileOp{};
  if (!node.given(2)) {
    node.fail(Reason::bad_model, "lacks its inputs 'tiles' and 'axis'");
    return TileOp{};
  }
  node.inputs = {node.input(0), whole_numbers(node, 1), whole_numbers(node, 2)};
  return TileOp{};
}

OpParams read_pad(Node& node) {
  PadOp op;
  const std::string mode = node.text("mode", "constant");
  if (!parse_name(mode, op.mode)) return UnknownOp{"its attribute 'mode' is '" + mode + "'"};
  if (node.opset >= 11) {
    if (!node.given(1)) node.fail(Reason::bad_model, "lacks its input 'pads'");
    return op;
  }
  const std::vector<int64_t> pads = node.integers(node.opset < 2 ? "paddings" : "pads");
  if (pads.empty() || pads.size() % 2 != 0 || pads.size() > 2 * kMaxRank) {
    node.fail(Reason::bad_model, "has " + std::to_string(pads.size()) + " values in 'pads'");
    return op;
  }
  op.begin = Dims(std::span(pads).first(pads.size() / 2));
  op.end = Dims(std::span(pads).last(pads.size() / 2));
  op.value = node.real("value", 0);
  op.given = true;
  return op;
}

OpParams read_depth_to_space(Node& node) {
  DepthToSpaceOp op{node.integer("blocksize", 0)};
  const std::string mode = node.text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") return UnknownOp{"its attribute 'mode' is '" + mode + "'"};
  op.columns_first = mode == "CRD";
  if (op.block <= 0) node.fail(Reason::bad_model, "has blocksize " + std::to_string(op.block));
  return op;
}

OpParams read_space_to_depth(Node& node) {
  SpaceToDepthOp op{node.integer("blocksize", 0)};
  const std::string mode = node.text("mode", "DCR");  // since opset 28
  if (mode != "DCR" && mode != "CRD") return UnknownOp{"its attribute 'mode' is '" + mode + "'"};
  op.columns_first = mode == "CRD";
  if (op.block <= 0) node.fail(Reason::bad_model, "has blocksize " + std::to_string(op.block));
  return op;
}

OpParams read_gather(Node& node) { return GatherOp{node.integer("axis", 0)}; }

// Inference: the first output is the input, the mask is all true (and hardly ever used).
OpParams read_dropout(Node& node) {
  node.ignore("ratio");
  node.ignore("seed");
  if (node.opset < 7 && !node.flag("is_test", false)) return UnknownOp{"its attribute 'is_test' is 0: the training form"};
  if (node.given(2)) {
    const HostTensor* training = node.constant(2);
    if (!training || training->elements() != 1 || training->dtype != DType::boolean || *training->data<uint8_t>() != 0)
      return UnknownOp{"its input 'training_mode' is not known to be false"};
  }
  if (node.outputs.size() > 1 && node.output_used(1)) {
    if (node.opset < 10) return UnknownOp{"its output 'mask' is used"};
    const TensorId shape = node.step(ShapeOp{}, {node.inputs[0]});
    node.emit(ConstantOfShapeOp{DType::boolean, 1}, {shape}, {node.outputs[1]}, ":mask");
  }
  node.inputs.resize(1);
  node.outputs.resize(1);
  return PointwiseNode{PointwiseOp::identity};
}

using Form = ReshapeOp::Form;
constexpr OperatorRow kRows[] = {
    {"Concat", read_concat, 1},
    {"Split", read_split, 1},
    {"Slice", read_slice, 1},
    {"Reshape", read_reshape, 1},
    {"Flatten", read_flatten, 1},
    {"Squeeze", read_squeeze<Form::squeeze>, 1},
    {"Unsqueeze", read_squeeze<Form::unsqueeze>, 1},
    {"Transpose", read_transpose, 1},
    {"Expand", read_expand, 2},
    {"Tile", read_tile, 2},
    {"Pad", read_pad, 1},
    {"DepthToSpace", read_depth_to_space, 1},
    {"SpaceToDepth", read_space_to_depth, 1},
    {"Gather", read_gather, 2},
    {"Dropout", read_dropout, 1},
};
}  // namespace

std::span<const OperatorRow> shape_operators() { return kRows; }

}  // namespace sparkle
