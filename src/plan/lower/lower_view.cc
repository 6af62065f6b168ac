// Reshape, Transpose, Slice, Split, Expand: changes of view that move nothing unless memory order stands in the way.
#include "plan/lower/lower.h"
#include "plan/lower/view.h"

namespace sparkle {
namespace {

int reshaped(Lowering& l, int v, const Dims& shape) {
  if (const auto view = reshape_view(l.draft.desc(v), shape)) return l.draft.view(v, *view);
  const int plain = l.draft.in_order(v, order_row_major(l.draft.desc(v).shape.size()), "reshape");
  return l.draft.view(plain, *reshape_view(l.draft.desc(plain), shape));
}

}  // namespace

Result<bool> lower_view(Lowering& l, const Group& group) {
  const Op& op = l.op(group);
  Draft& d = l.draft;
  if (std::holds_alternative<ReshapeOp>(op.params)) {
    l.set(group.output, reshaped(l, l.either(op.inputs[0]), l.result(group).shape));
  } else if (const auto* transpose = std::get_if<TransposeOp>(&op.params)) {
    const int x = l.either(op.inputs[0]);
    l.set(group.output, d.view(x, transpose_view(d.desc(x), transpose->permutation)));
  } else if (const auto* slice = std::get_if<SliceOp>(&op.params)) {
    const int x = l.either(op.inputs[0]);
    l.set(group.output, d.view(x, slice_view(d.desc(x), slice->starts, slice->steps, l.result(group).shape)));
  } else if (const auto* split = std::get_if<SplitOp>(&op.params)) {
    const int x = l.either(op.inputs[0]);
    const TensorDesc whole = d.desc(x);
    const int rank = whole.shape.size(), axis = static_cast<int>(split->axis < 0 ? split->axis + rank : split->axis);
    int64_t begin = 0;
    for (TensorId id : op.outputs) {
      if (id == kAbsent) continue;
      Dims starts = Dims::filled(rank, 0);
      starts[axis] = begin;
      const Dims shape = l.graph.tensor(id).shape;
      l.set(id, d.view(x, slice_view(whole, starts, Dims::filled(rank, 1), shape)));
      begin += shape[axis];
    }
  } else if (std::holds_alternative<ExpandOp>(op.params)) {
    const int x = l.either(op.inputs[0]);
    l.set(group.output, d.view(x, broadcast_view(d.desc(x), l.result(group).shape)));
  } else {
    return false;
  }
  return true;
}

}  // namespace sparkle
