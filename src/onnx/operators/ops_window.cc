// Operators with a sliding window: convolutions and local pooling.
#include <algorithm>

#include "onnx/node.h"

namespace sparkle {
namespace {

AutoPad auto_pad(Node& node) {
  const std::string text = node.text("auto_pad", "NOTSET");
  if (text == "VALID") return AutoPad::valid;
  if (text == "SAME_UPPER") return AutoPad::same_upper;
  if (text == "SAME_LOWER") return AutoPad::same_lower;
  if (text != "NOTSET" && !text.empty()) node.fail(Reason::bad_model, "has the unknown auto_pad '" + text + "'");
  return AutoPad::notset;
}

Dims positive(Node& node, std::string_view name) {
  const Dims values = node.dims(name);
  for (int64_t v : values)
    if (v <= 0) node.fail(Reason::bad_model, "has " + std::to_string(v) + " in '" + std::string(name) + "'");
  return values;
}

// The fields that ConvOp and PoolOp share.
template <class Op>
void read_window(Node& node, Op& op) {
  op.kernel = positive(node, "kernel_shape");
  op.strides = positive(node, "strides");
  op.dilations = positive(node, "dilations");
  op.auto_pad = auto_pad(node);
  const std::vector<int64_t> pads = node.integers("pads");
  const size_t axes = pads.size() / 2;
  if (pads.size() % 2 != 0 || axes > kMaxRank) {
    node.fail(Reason::bad_model, "has " + std::to_string(pads.size()) + " values in 'pads'");
    return;
  }
  op.pads_begin = Dims(std::span(pads).first(axes));
  op.pads_end = Dims(std::span(pads).last(axes));
  // All fields that are given speak of the same number of axes.
  const size_t count =
      static_cast<size_t>(std::max({op.kernel.size(), op.strides.size(), op.dilations.size(), static_cast<int>(axes)}));
  for (const auto& [name, size] : {std::pair{"kernel_shape", op.kernel.size()},
                                   {"strides", op.strides.size()},
                                   {"dilations", op.dilations.size()},
                                   {"pads", op.pads_begin.size()}})
    if (size != 0 && static_cast<size_t>(size) != count)
      node.fail(Reason::bad_model, "speaks of " + std::to_string(size) + " spatial axes in '" + name + "' and of " +
                                       std::to_string(count) + " elsewhere");
}

OpParams read_conv(Node& node) {
  ConvOp op;
  read_window(node, op);
  op.groups = node.integer("group", 1);
  if (op.groups <= 0) node.fail(Reason::bad_model, "has group " + std::to_string(op.groups));
  return op;
}

OpParams read_conv_transpose(Node& node) {
  ConvOp op = std::get<ConvOp>(read_conv(node));
  op.transposed = true;
  op.output_padding = node.dims("output_padding");
  op.output_shape = node.dims("output_shape");
  return op;
}

OpParams read_pool(Node& node, PoolKind kind) {
  PoolOp op;
  op.kind = kind;
  read_window(node, op);
  if (op.kernel.empty()) node.fail(Reason::bad_model, "lacks its attribute 'kernel_shape'");
  op.ceil_mode = node.flag("ceil_mode", false);
  return op;
}

OpParams read_max_pool(Node& node) {
  PoolOp op = std::get<PoolOp>(read_pool(node, PoolKind::max));
  op.storage_order = static_cast<int>(node.integer("storage_order", 0));
  return op;
}

OpParams read_average_pool(Node& node) {
  PoolOp op = std::get<PoolOp>(read_pool(node, PoolKind::average));
  op.count_pad = node.flag("count_include_pad", false);
  return op;
}

OpParams read_lp_pool(Node& node) {
  PoolOp op = std::get<PoolOp>(read_pool(node, PoolKind::lp));
  if (node.opset < 2) {  // a number then, an integer since
    const double p = node.real("p", 2);
    if (p != 1 && p != 2 && p != 3) return UnknownOp{"its attribute 'p' is " + std::to_string(p)};
    op.p = static_cast<int64_t>(p);
  } else {
    op.p = node.integer("p", 2);
  }
  if (op.p < 1) node.fail(Reason::bad_model, "has p " + std::to_string(op.p));
  return op;
}

constexpr OperatorRow kRows[] = {
    {"Conv", read_conv, 2},        {"ConvTranspose", read_conv_transpose, 2},
    {"MaxPool", read_max_pool, 1}, {"AveragePool", read_average_pool, 1},
    {"LpPool", read_lp_pool, 1},
};
}  // namespace

std::span<const OperatorRow> window_operators() { return kRows; }

}  // namespace sparkle
