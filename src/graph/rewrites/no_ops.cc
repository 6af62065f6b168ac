// Operators that pass their input on unchanged are dropped.
#include "graph/rewrites/rewrites.h"

namespace sparkle {
namespace {

bool all_equal(const Dims& dims, int64_t value) {
  for (int64_t v : dims)
    if (v != value) return false;
  return true;
}

bool same_shape(Editor& e, const Op& op) {
  const GraphTensor &x = e.tensor(op.inputs[0]), &y = e.tensor(op.outputs[0]);
  return x.known && y.known && x.shape == y.shape;
}

// Every entry of a constant of integers is `value`.
bool constant_all(const HostTensor* t, int64_t value) {
  if (!t || t->dtype != DType::i64) return false;
  for (int64_t i = 0; i < t->elements(); ++i)
    if (t->data<int64_t>()[i] != value) return false;
  return true;
}

bool is_no_op(Editor& e, const Op& op, bool bound) {
  if (const auto* p = std::get_if<PointwiseNode>(&op.params)) return p->op == PointwiseOp::identity;
  if (std::holds_alternative<ConcatOp>(op.params)) return op.inputs.size() == 1;
  if (const auto* p = std::get_if<CastOp>(&op.params)) {
    if (op.inputs.size() > 1) return false;  // its type is not known yet
    const int producing_op = e.producer(op.inputs[0]);
    const CastOp* before = producing_op < 0 || e.op(producing_op).inputs.size() > 1 ? nullptr : e.made_by<CastOp>(op.inputs[0]);
    return (bound && e.tensor(op.inputs[0]).dtype == p->to) || (before && before->to == p->to);
  }
  if (const auto* p = std::get_if<TransposeOp>(&op.params)) {
    for (int i = 0; i < p->permutation.size(); ++i)
      if (p->permutation[i] != i) return false;
    return !p->permutation.empty();
  }
  if (const auto* p = std::get_if<PadOp>(&op.params))
    return op.inputs.size() > 1 ? constant_all(e.constant_input(op, 1), 0)
                                : p->given && all_equal(p->begin, 0) && all_equal(p->end, 0);
  if (const auto* p = std::get_if<TileOp>(&op.params))
    return op.inputs.size() > 1 ? constant_all(e.constant_input(op, 1), 1) : !p->repeats.empty() && all_equal(p->repeats, 1);
  if (!bound) return false;
  if (std::holds_alternative<ReshapeOp>(op.params) || std::holds_alternative<ExpandOp>(op.params)) return same_shape(e, op);
  if (const auto* p = std::get_if<SliceOp>(&op.params)) return same_shape(e, op) && all_equal(p->steps, 1);
  if (std::holds_alternative<SplitOp>(op.params)) return op.outputs.size() == 1;
  if (const auto* p = std::get_if<ResizeOp>(&op.params)) {
    for (double scale : p->params.scales)
      if (scale != 1) return false;
    return p->params.roi_begin.empty() && same_shape(e, op);
  }
  if (const auto* p = std::get_if<ReduceOp>(&op.params))
    return p->axes.empty() && p->noop_if_no_axes &&
           (p->kind == ReduceKind::sum || p->kind == ReduceKind::mean || p->kind == ReduceKind::max ||
            p->kind == ReduceKind::min);
  return false;
}

}  // namespace

bool drop_no_ops(Editor& e) {
  bool changed = false;
  for (int i = 0; i < e.count(); ++i) {
    if (e.erased(i)) continue;
    const Op& op = e.op(i);
    if (op.inputs.empty() || op.inputs[0] == kAbsent || op.outputs.empty() || op.outputs[0] == kAbsent) continue;
    // After bind() every tensor is known; before it types and shapes of results are not.
    const bool bound = e.tensor(op.inputs[0]).known && e.tensor(op.outputs[0]).known;
    if (is_no_op(e, op, bound)) changed = e.bypass(i, op.inputs[0]) || changed;
  }
  return changed;
}

}  // namespace sparkle
