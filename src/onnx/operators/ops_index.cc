// Operators that look for places, or read and write at them (graph/index_ops.h), all opsets.
#include "onnx/node.h"

namespace sparkle {
namespace {

template <bool smallest>
OpParams read_arg(Node& node) {
  return ArgOp{smallest, node.integer("axis", 0), node.flag("keepdims", true), node.flag("select_last_index", false)};
}

// 1 at the first largest element of each line along the axis, else 0; before opset 13 a line is all from the axis on.
OpParams read_hardmax(Node& node) {
  const bool flat = node.opset < 13;
  int64_t axis = node.integer("axis", flat ? 1 : -1);
  const TensorId given = node.input(0);
  TensorId x = given;
  if (flat) {
    x = node.step(ReshapeOp{ReshapeOp::Form::flatten, {axis}, false, true}, {x});
    axis = 1;
  }
  const TensorId place = node.step(ArgOp{false, axis, true, false}, {x});
  const TensorId zeros = node.step(ConstantOfShapeOp{DType::f32, 0}, {node.step(ShapeOp{}, {x})});
  const TensorId ones = node.step(ConstantOfShapeOp{DType::f32, 1}, {node.step(ShapeOp{}, {place})});
  TensorId y = node.step(ScatterElementsOp{axis, ScatterReduction::none}, {zeros, place, ones});
  if (flat) y = node.step(ReshapeOp{ReshapeOp::Form::reshape, {}, true, false}, {y, node.step(ShapeOp{}, {given})});
  node.inputs = {y, given};
  return CastOp{};  // to the type of the input
}

OpParams read_top_k(Node& node) {
  TopKOp op{node.integer("axis", -1), -1, node.flag("largest", true)};
  node.ignore("sorted");  // elements come best first whether asked for or not
  if (node.opset < 10) {
    if (!node.has("k")) node.fail(Reason::bad_model, "lacks its attribute 'k'");
    op.k = node.integer("k", -1);
  } else if (!node.given(1)) {
    node.fail(Reason::bad_model, "lacks its input 'K'");
  }
  return op;
}

OpParams read_cum_sum(Node& node) { return CumSumOp{0, node.flag("exclusive", false), node.flag("reverse", false)}; }
OpParams read_trilu(Node& node) { return TriluOp{node.flag("upper", true), 0}; }
OpParams read_gather_elements(Node& node) { return GatherElementsOp{node.integer("axis", 0)}; }
OpParams read_gather_nd(Node& node) { return GatherNDOp{node.integer("batch_dims", 0)}; }

template <class Op>
OpParams with_reduction(Node& node, Op op) {
  const std::string reduction = node.text("reduction", "none");
  if (!parse_name(reduction, op.reduction)) return UnknownOp{"its attribute 'reduction' is '" + reduction + "'"};
  return op;
}
OpParams read_scatter_elements(Node& node) { return with_reduction(node, ScatterElementsOp{node.integer("axis", 0)}); }
// The name of ScatterElements before opset 11, when it knew no reduction.
OpParams read_scatter(Node& node) { return ScatterElementsOp{node.integer("axis", 0), ScatterReduction::none}; }
OpParams read_scatter_nd(Node& node) { return with_reduction(node, ScatterNDOp{}); }
OpParams read_one_hot(Node& node) { return OneHotOp{node.integer("axis", -1), -1}; }
OpParams read_center_crop_pad(Node& node) { return CenterCropPadOp{node.dims("axes"), {}, false}; }

OpParams read_einsum(Node& node) {
  if (!node.has("equation")) node.fail(Reason::bad_model, "lacks its attribute 'equation'");
  return EinsumOp{node.text("equation", "")};
}

OpParams read_non_max_suppression(Node& node) {
  const int64_t form = node.integer("center_point_box", 0);
  if (form != 0 && form != 1) return UnknownOp{"its attribute 'center_point_box' is " + std::to_string(form)};
  NonMaxSuppressionOp op;
  op.centers = form == 1;
  return op;
}

constexpr OperatorRow kRows[] = {
    {"ArgMax", read_arg<false>, 1},
    {"ArgMin", read_arg<true>, 1},
    {"Hardmax", read_hardmax, 1},
    {"TopK", read_top_k, 1},
    {"CumSum", read_cum_sum, 2},
    {"Trilu", read_trilu, 1},
    {"GatherElements", read_gather_elements, 2},
    {"GatherND", read_gather_nd, 2},
    {"Scatter", read_scatter, 3},
    {"ScatterElements", read_scatter_elements, 3},
    {"ScatterND", read_scatter_nd, 3},
    {"OneHot", read_one_hot, 3},
    {"CenterCropPad", read_center_crop_pad, 2},
    {"Einsum", read_einsum, 1},
    {"NonMaxSuppression", read_non_max_suppression, 2},
};
}  // namespace

std::span<const OperatorRow> index_operators() { return kRows; }

}  // namespace sparkle
