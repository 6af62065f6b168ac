// Powers of a constant exponent that arithmetic has an instruction for: x^2 is a product, x^0.5 a root, x^1 is x. Others take
// two functions an element. Floats alone: powers of integers are rounded to integers.
#include "graph/evaluate/values.h"
#include "graph/rewrites/rewrites.h"

namespace sparkle {

bool simplify_powers(Editor& e) {
  bool changed = false;
  for (int i = 0; i < e.count(); ++i) {
    const auto* node = e.erased(i) ? nullptr : std::get_if<PointwiseNode>(&e.op(i).params);
    if (!node || node->op != PointwiseOp::pow || e.op(i).inputs.size() != 2) continue;
    const TensorId x = e.op(i).inputs[0];
    const HostTensor* exponent = e.constant(e.op(i).inputs[1]);
    const GraphTensor& base = e.tensor(x);
    if (!exponent || exponent->elements() != 1 || !base.known || !is_float(base.dtype)) continue;
    if (exponent->shape.size() > base.shape.size()) continue;
    const double value = scalar(*exponent);
    if (value == 1) {
      changed = e.bypass(i, x) || changed;
      continue;
    }
    if (value != 2 && value != 0.5) continue;
    e.op(i).params = PointwiseNode{value == 2 ? PointwiseOp::mul : PointwiseOp::sqrt};
    e.op(i).type = name_of(value == 2 ? PointwiseOp::mul : PointwiseOp::sqrt);
    e.set_inputs(i, value == 2 ? std::vector<TensorId>{x, x} : std::vector<TensorId>{x});
    changed = true;
  }
  return changed;
}

}  // namespace sparkle
