// Group normalisation as exporters write it: x reshaped to [N, groups, rest], InstanceNormalization with scale 1 and bias 0,
// reshaped back, then a factor and a summand per channel. Needs shapes, so it is found after bind() only.
#include "graph/rewrites/rewrites.h"
#include "graph/evaluate/values.h"

namespace sparkle {
namespace {

bool all_elements(const HostTensor* t, double value) {
  if (!t) return false;
  for (double v : as_doubles(*t))
    if (v != value) return false;
  return true;
}

// The constant of `op` on x, one value per channel of a tensor of this shape, as [C].
bool channel_constant(Editor& e, const Op& op, TensorId x, const Dims& shape, HostTensor& out) {
  if (op.inputs.size() != 2) return false;
  const HostTensor* c = e.constant(op.inputs[op.inputs[0] == x ? 1 : 0]);
  if (!c || c->elements() != shape[1] || c->shape.size() > shape.size()) return false;
  const int at = 1 - (shape.size() - c->shape.size());
  if (at < 0 || c->shape[at] != shape[1]) return false;
  out = *c;
  out.shape = {shape[1]};
  return true;
}

}  // namespace

bool match_group_normalization(Editor& e) {
  bool changed = false;
  for (int i = 0; i < e.count(); ++i) {
    const auto* add = e.erased(i) ? nullptr : std::get_if<PointwiseNode>(&e.op(i).params);
    if (!add || add->op != PointwiseOp::add || e.op(i).inputs.size() != 2) continue;
    for (size_t side = 0; side < 2; ++side) {
      const TensorId scaled = e.op(i).inputs[side];
      const auto* mul = e.made_by<PointwiseNode>(scaled);
      if (!mul || mul->op != PointwiseOp::mul || !e.single_use(scaled)) continue;
      const Op& mul_op = e.op(e.producer(scaled));
      const TensorId back = e.made_by<ReshapeOp>(mul_op.inputs[0]) ? mul_op.inputs[0] : mul_op.inputs[1];
      if (!e.made_by<ReshapeOp>(back) || !e.single_use(back)) continue;
      const TensorId normalized = e.op(e.producer(back)).inputs[0];
      const auto* instance = e.made_by<InstanceNormalizationOp>(normalized);
      if (!instance || !e.single_use(normalized)) continue;
      const Op& instance_op = e.op(e.producer(normalized));
      const TensorId grouped = instance_op.inputs[0];
      if (!e.made_by<ReshapeOp>(grouped)) continue;
      const TensorId x = e.op(e.producer(grouped)).inputs[0];
      const GraphTensor &tx = e.tensor(x), &tg = e.tensor(grouped), &tb = e.tensor(back);
      if (!tx.known || !tg.known || !tb.known || tx.shape != tb.shape || tx.shape.size() < 3 || tg.shape.size() < 3) continue;
      if (tg.shape[0] != tx.shape[0] || tg.shape[1] < 1 || tx.shape[1] % tg.shape[1] != 0) continue;
      if (!all_elements(e.constant_input(instance_op, 1), 1) || !all_elements(e.constant_input(instance_op, 2), 0)) continue;
      HostTensor factor, summand;
      if (!channel_constant(e, mul_op, back, tx.shape, factor) || !channel_constant(e, e.op(i), scaled, tx.shape, summand))
        continue;
      const GroupNormalizationOp group{tg.shape[1], instance->epsilon};
      const std::string name = e.op(i).name;
      const TensorId factor_id = e.add_constant(name + "_factor", factor);
      const TensorId summand_id = e.add_constant(name + "_summand", summand);
      e.op(i).params = group;
      e.op(i).type = "GroupNormalization";
      e.set_inputs(i, {x, factor_id, summand_id});
      changed = true;
      break;
    }
  }
  return changed;
}

}  // namespace sparkle
