// Add(MatMul(x, w), b) with a constant vector b: the product's own summand.
#include "graph/rewrites/rewrites.h"

namespace sparkle {

bool match_matmul_bias(Editor& e) {
  bool changed = false;
  for (int i = 0; i < e.count(); ++i) {
    const auto* add = e.erased(i) ? nullptr : std::get_if<PointwiseNode>(&e.op(i).params);
    if (!add || add->op != PointwiseOp::add || e.op(i).inputs.size() != 2) continue;
    for (size_t side = 0; side < 2; ++side) {
      const TensorId product = e.op(i).inputs[side], summand = e.op(i).inputs[1 - side];
      const MatMulOp* matmul = e.made_by<MatMulOp>(product);
      const HostTensor* c = e.constant(summand);
      if (!matmul || !c || c->shape.size() != 1 || !e.single_use(product)) continue;
      const int at = e.producer(product);
      Op& op = e.op(at);
      const HostTensor* w = e.constant_input(op, 1);
      if (!w || w->shape.size() < 2 || (op.inputs.size() > 2 && op.inputs[2] != kAbsent)) continue;
      const int64_t n = matmul->gemm && matmul->transpose_b ? w->shape[0] : w->shape.back();
      if (c->shape[0] != n || c->dtype != w->dtype) continue;
      std::get<MatMulOp>(op.params).beta = 1;
      e.set_input(at, 2, summand);
      changed = e.bypass(i, product) || changed;
      break;
    }
  }
  return changed;
}

}  // namespace sparkle
