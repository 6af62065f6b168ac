// Chains of Transpose become one; of a chain of reshapes only the last counts.
#include "graph/rewrites/rewrites.h"

namespace sparkle {
namespace {

bool merge_transpose(Editor& e, int i, TransposeOp& outer) {
  const TensorId between = e.op(i).inputs[0];
  const TransposeOp* inner = e.made_by<TransposeOp>(between);
  if (!inner || inner->permutation.empty() || inner->permutation.size() != outer.permutation.size()) return false;
  const int rank = outer.permutation.size();
  Dims merged;
  for (int64_t p : outer.permutation) {
    if (p < 0 || p >= rank) return false;
    merged.push_back(inner->permutation[static_cast<int>(p)]);
  }
  outer.permutation = merged;
  e.set_input(i, 0, e.op(e.producer(between)).inputs[0]);
  return true;
}

// The target does not depend on the shape it starts from (but on the number of elements): no size is copied.
bool stands_alone(Editor& e, const Op& op, const ReshapeOp& outer) {
  if (outer.form != ReshapeOp::Form::reshape) return false;
  if (op.inputs.size() > 1 && op.inputs[1] != kAbsent) {
    const HostTensor* target = e.constant(op.inputs[1]);
    if (!target || target->dtype != DType::i64) return false;
    for (int64_t i = 0; i < target->elements(); ++i)
      if (target->data<int64_t>()[i] == 0) return false;
    return true;
  }
  for (int64_t size : outer.target)
    if (size == 0) return false;
  return outer.target_given;
}

}  // namespace

bool merge_moves(Editor& e) {
  bool changed = false;
  for (int i = 0; i < e.count(); ++i) {
    if (e.erased(i) || e.op(i).inputs.empty() || e.op(i).inputs[0] == kAbsent) continue;
    Op& op = e.op(i);
    if (auto* transpose = std::get_if<TransposeOp>(&op.params)) {
      changed = merge_transpose(e, i, *transpose) || changed;
    } else if (const auto* reshape = std::get_if<ReshapeOp>(&op.params)) {
      if (!e.made_by<ReshapeOp>(op.inputs[0]) || !stands_alone(e, op, *reshape)) continue;
      e.set_input(i, 0, e.op(e.producer(op.inputs[0])).inputs[0]);
      changed = true;
    }
  }
  return changed;
}

}  // namespace sparkle
