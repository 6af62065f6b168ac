// Resize and its ancestor Upsample, all opsets, brought to the inputs x, roi?, scales?, sizes? of opset 11.
#include "onnx/node.h"

namespace sparkle {
namespace {

bool read_mode(Node& node, ResizeMode& mode) {
  const std::string text = node.text("mode", "nearest");
  if (text == "bilinear" || text == "trilinear") {  // names of the oldest files
    mode = ResizeMode::linear;
    return true;
  }
  return parse_name(text, mode);
}

OpParams read_upsample(Node& node) {
  ResizeOp op;
  if (!read_mode(node, op.params.mode)) return UnknownOp{"its attribute 'mode' is '" + node.text("mode", "") + "'"};
  op.params.coordinates = ResizeCoordinates::asymmetric;
  op.params.nearest = ResizeNearest::floor;
  if (node.opset < 7) {
    op.given_scales = {1, 1, node.real("height_scale", 1), node.real("width_scale", 1)};
  } else if (node.opset < 9) {
    op.given_scales = node.reals("scales");
    if (op.given_scales.empty()) node.fail(Reason::bad_model, "lacks its attribute 'scales'");
  } else if (!node.given(1)) {
    node.fail(Reason::bad_model, "lacks its input 'scales'");
  } else {
    node.inputs = {node.inputs[0], kAbsent, node.inputs[1]};
  }
  for (double scale : op.given_scales)
    if (!(scale > 0)) node.fail(Reason::bad_model, "has the scale " + std::to_string(scale));
  return op;
}

// Opset 10 knows no coordinate modes: positions are out / scale; nearest takes the element below, above along axes that
// shrink.
OpParams read_resize_10(Node& node) {
  ResizeOp op;
  if (!read_mode(node, op.params.mode)) return UnknownOp{"its attribute 'mode' is '" + node.text("mode", "") + "'"};
  if (!node.given(1) || node.inputs.size() > 2) node.fail(Reason::bad_model, "takes the inputs x and scales");
  op.params.coordinates = ResizeCoordinates::asymmetric;
  op.params.nearest = ResizeNearest::per_axis;
  node.inputs = {node.inputs[0], kAbsent, node.input(1)};
  return op;
}

OpParams read_resize(Node& node) {
  if (node.opset < 11) return read_resize_10(node);
  ResizeOp op;
  if (!read_mode(node, op.params.mode)) return UnknownOp{"its attribute 'mode' is '" + node.text("mode", "") + "'"};
  const std::string coordinates = node.text("coordinate_transformation_mode", "half_pixel");
  const std::string nearest = node.text("nearest_mode", "round_prefer_floor");
  const std::string keep = node.text("keep_aspect_ratio_policy", "stretch");
  if (coordinates == "tf_crop_and_resize") {
    op.params.coordinates = ResizeCoordinates::tf_crop;
  } else if (!parse_name(coordinates, op.params.coordinates)) {
    return UnknownOp{"its attribute 'coordinate_transformation_mode' is '" + coordinates + "'"};
  }
  if (!parse_name(nearest, op.params.nearest) || op.params.nearest == ResizeNearest::per_axis)
    return UnknownOp{"its attribute 'nearest_mode' is '" + nearest + "'"};
  if (keep == "not_larger") {
    op.keep = ResizeOp::Keep::not_larger;
  } else if (keep == "not_smaller") {
    op.keep = ResizeOp::Keep::not_smaller;
  } else if (keep != "stretch") {
    return UnknownOp{"its attribute 'keep_aspect_ratio_policy' is '" + keep + "'"};
  }
  op.params.cubic_a = node.real("cubic_coeff_a", -0.75);
  op.params.exclude_outside = node.flag("exclude_outside", false);
  op.params.extrapolation = node.real("extrapolation_value", 0);
  op.antialias = node.flag("antialias", false);
  op.axes = node.dims("axes");
  // An empty tensor stands for an input that is not given.
  for (int i = 1; i < static_cast<int>(node.inputs.size()); ++i)
    if (const HostTensor* value = node.constant(i); value && value->elements() == 0)
      node.inputs[static_cast<size_t>(i)] = kAbsent;
  if (!node.given(2) && !node.given(3)) node.fail(Reason::bad_model, "has neither scales nor sizes");
  return op;
}

constexpr OperatorRow kRows[] = {
    {"Resize", read_resize, 1},
    {"Upsample", read_upsample, 1},
};
}  // namespace

std::span<const OperatorRow> resize_operators() { return kRows; }

}  // namespace sparkle
