// Operators that read at positions which are data: GridSample and DeformConv.
#include <algorithm>

#include "onnx/node.h"

namespace sparkle {
namespace {

OpParams read_grid_sample(Node& node) {
  GridSampleOp op;
  std::string mode = node.text("mode", "linear");
  if (mode == "bilinear") mode = "linear";  // names before opset 20
  if (mode == "bicubic") mode = "cubic";
  const std::string padding = node.text("padding_mode", "zeros");
  op.params.align_corners = node.flag("align_corners", false);
  if (!parse_name(mode, op.params.mode)) return UnknownOp{"its attribute 'mode' is '" + mode + "'"};
  if (!parse_name(padding, op.params.padding)) return UnknownOp{"its attribute 'padding_mode' is '" + padding + "'"};
  return op;
}

OpParams read_deform_conv(Node& node) {
  DeformConvOp op;
  op.kernel = node.dims("kernel_shape");
  op.strides = node.dims("strides");
  op.dilations = node.dims("dilations");
  const std::vector<int64_t> pads = node.integers("pads");
  const size_t axes = pads.size() / 2;
  if (pads.size() % 2 != 0 || axes > kMaxRank) {
    node.fail(Reason::bad_model, "has " + std::to_string(pads.size()) + " values in 'pads'");
    return op;
  }
  op.pads_begin = Dims(std::span(pads).first(axes));
  op.pads_end = Dims(std::span(pads).last(axes));
  op.groups = node.integer("group", 1);
  op.offset_groups = node.integer("offset_group", 1);
  return op;
}

constexpr OperatorRow kRows[] = {
    {"GridSample", read_grid_sample, 2},
    {"DeformConv", read_deform_conv, 3},
};
}  // namespace

std::span<const OperatorRow> sample_operators() { return kRows; }

}  // namespace sparkle
