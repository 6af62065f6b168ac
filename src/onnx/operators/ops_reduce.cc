// Reductions over axes and global pooling. The axes are an attribute before opset 18 (ReduceSum: 13), an input since.
#include "onnx/node.h"

namespace sparkle {
namespace {

template <ReduceKind kind>
OpParams reduce(Node& node) {
  ReduceOp op;
  op.kind = kind;
  op.axes = node.dims("axes");
  op.keep_dims = node.flag("keepdims", true);
  op.noop_if_no_axes = node.flag("noop_with_empty_axes", false);
  if (!op.axes.empty() && node.given(1)) node.fail(Reason::bad_model, "has its axes twice, as attribute and as input");
  return op;
}

OpParams global(ReduceKind kind) {
  ReduceOp op;
  op.kind = kind;
  op.all_spatial = true;
  return op;
}
OpParams read_global_average(Node&) { return global(ReduceKind::mean); }
OpParams read_global_max(Node&) { return global(ReduceKind::max); }
OpParams read_global_lp(Node& node) {
  const double p = node.opset < 2 ? node.real("p", 2) : static_cast<double>(node.integer("p", 2));
  if (p == 1) return global(ReduceKind::l1);
  if (p == 2) return global(ReduceKind::l2);
  return UnknownOp{"its attribute 'p' is neither 1 nor 2"};
}

using R = ReduceKind;
constexpr OperatorRow kRows[] = {
    {"ReduceSum", reduce<R::sum>, 1},
    {"ReduceMean", reduce<R::mean>, 1},
    {"ReduceMax", reduce<R::max>, 1},
    {"ReduceMin", reduce<R::min>, 1},
    {"ReduceProd", reduce<R::product>, 1},
    {"ReduceL1", reduce<R::l1>, 1},
    {"ReduceL2", reduce<R::l2>, 1},
    {"ReduceSumSquare", reduce<R::sum_square>, 1},
    {"ReduceLogSum", reduce<R::log_sum>, 1},
    {"ReduceLogSumExp", reduce<R::log_sum_exp>, 1},
    {"GlobalAveragePool", read_global_average, 1},
    {"GlobalMaxPool", read_global_max, 1},
    {"GlobalLpPool", read_global_lp, 1},
};
}  // namespace

std::span<const OperatorRow> reduce_operators() { return kRows; }

}  // namespace sparkle
