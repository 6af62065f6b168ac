// Normalisations, softmax, reductions.
#include "families/normalize/normalize.h"
#include "families/pointwise/pointwise.h"
#include "families/reduce/reduce.h"
#include "families/softmax/softmax.h"
#include "plan/lower/lower.h"
#include "plan/lower/view.h"

namespace sparkle {
namespace {

int normalize_step(Lowering& l, const Group& group, int x, TensorDesc view, const NormalizeParams& params,
                   const std::vector<int>& affine, const std::vector<TensorDesc>& affine_views) {
  Draft& d = l.draft;
  const Dims whole = d.desc(x).shape;
  const int out = d.make(l.result(group).name, d.desc(x).dtype, whole, d.desc(x).layout.order);
  // The output is seen through the same split of axes as the input.
  TensorDesc out_view = d.desc(out);
  if (!(view.shape == whole)) out_view = split_axis(out_view, 1, view.shape[1], view.shape[2]);
  std::vector<int> inputs{d.view(x, view)};
  for (size_t i = 0; i < affine.size(); ++i) inputs.push_back(d.view(affine[i], affine_views[i]));
  d.step(l.op(group).name, l.nodes(group), StageParams(params), inputs, {d.view(out, out_view)});
  return out;
}

// [C] (or anything of that many elements) along axis 1 of a shape.
TensorDesc per_channel(const TensorDesc& values, const Dims& shape) {
  Dims ones = Dims::filled(shape.size(), 1);
  ones[1] = values.elements();
  return broadcast_view(*reshape_view(values, ones), shape);
}

Status lower_instance(Lowering& l, const Group& group, const Op& op, double epsilon) {
  const int x = l.computed(op.inputs[0]), scale = l.computed(op.inputs[1]), bias = l.computed(op.inputs[2]);
  const TensorDesc view = l.draft.desc(x);
  NormalizeParams params;
  params.epsilon = epsilon;
  for (int i = 2; i < view.shape.size(); ++i) params.axes.push_back(i);
  l.set(group.output,
        normalize_step(l, group, x, view, params, {scale, bias},
                       {per_channel(l.draft.desc(scale), view.shape), per_channel(l.draft.desc(bias), view.shape)}));
  return ok();
}

Status lower_group_norm(Lowering& l, const Group& group, const Op& op, const GroupNormalizationOp& norm) {
  const int x = l.computed(op.inputs[0]), scale = l.computed(op.inputs[1]), bias = l.computed(op.inputs[2]);
  const TensorDesc whole = l.draft.desc(x);
  const TensorDesc view = split_axis(whole, 1, norm.groups, whole.shape[1] / norm.groups);
  NormalizeParams params;
  params.epsilon = norm.epsilon;
  for (int i = 2; i < view.shape.size(); ++i) params.axes.push_back(i);
  const auto affine = [&](int v) {
    const TensorDesc values = l.draft.desc(v);
    Dims ones = Dims::filled(view.shape.size(), 1);
    ones[1] = norm.groups;
    ones[2] = values.elements() == norm.groups ? 1 : view.shape[2];  // one per group (opset 18) or per channel (21)
    return broadcast_view(*reshape_view(values, ones), view.shape);
  };
  l.set(group.output, normalize_step(l, group, x, view, params, {scale, bias}, {affine(scale), affine(bias)}));
  return ok();
}

Status lower_layer(Lowering& l, const Group& group, const Op& op, const LayerNormalizationOp& norm) {
  if (op.outputs.size() > 1)
    for (size_t i = 1; i < op.outputs.size(); ++i)
      if (op.outputs[i] != kAbsent)
        return Error{Reason::operator_not_served,
                     "Node '" + op.name + "' (" + op.type + "): the outputs Mean and InvStdDev are not supported yet."};
  const int x = l.computed(op.inputs[0]);
  const TensorDesc view = l.draft.desc(x);
  NormalizeParams params;
  params.epsilon = norm.epsilon;
  params.center = norm.centred;
  const int rank = view.shape.size();
  for (int i = static_cast<int>(norm.axis < 0 ? norm.axis + rank : norm.axis); i < rank; ++i) params.axes.push_back(i);
  std::vector<int> affine;
  std::vector<TensorDesc> views;
  params.scale = params.bias = false;
  for (size_t i = 1; i < op.inputs.size() && i < 3; ++i) {
    if (op.inputs[i] == kAbsent) continue;
    (i == 1 ? params.scale : params.bias) = true;
    affine.push_back(l.computed(op.inputs[i]));
    views.push_back(broadcast_view(l.draft.desc(affine.back()), view.shape));
  }
  l.set(group.output, normalize_step(l, group, x, view, params, affine, views));
  return ok();
}

// Without parameters of their own: MeanVarianceNormalization and LpNormalization.
Status lower_bare(Lowering& l, const Group& group, const Op& op, NormalizeParams params) {
  params.scale = params.bias = false;
  const int x = l.computed(op.inputs[0]);
  l.set(group.output, normalize_step(l, group, x, l.draft.desc(x), params, {}, {}));
  return ok();
}

// On its own, with statistics that are not constant: (x - mean) / sqrt(variance + epsilon) * scale + bias as one program.
Status lower_batch(Lowering& l, const Group& group, const Op& op, double epsilon) {
  const Dims shape = l.result(group).shape;
  std::vector<int> operands{l.computed(op.inputs[0])};
  for (size_t i = 1; i < 5; ++i) {
    const int v = l.computed(op.inputs[i]);
    operands.push_back(shape.size() < 2 ? v : l.draft.view(v, per_channel(l.draft.desc(v), shape)));
  }
  const PointwiseParams program{5,
                                {{PointwiseOp::sub, 0, 3, 0, 0, 0},           // 5: x - mean
                                 {PointwiseOp::affine, 4, 0, 0, 1, epsilon},  // 6: variance + epsilon
                                 {PointwiseOp::sqrt, 6, 0, 0, 0, 0},          // 7
                                 {PointwiseOp::div, 5, 7, 0, 0, 0},           // 8
                                 {PointwiseOp::fma, 8, 1, 2, 0, 0}}};         // 9: * scale + bias
  l.set(group.output,
        pointwise_step(l, l.result(group).name, l.nodes(group), program, operands, l.draft.desc(operands[0]).dtype, shape));
  l.draft.steps.back().name = op.name;
  return ok();
}

Status lower_softmax(Lowering& l, const Group& group, const Op& op, const SoftmaxOp& softmax) {
  Draft& d = l.draft;
  int x = l.computed(op.inputs[0]);
  const int rank = d.desc(x).shape.size();
  SoftmaxParams params;
  params.first_axis = static_cast<int>(softmax.axis < 0 ? softmax.axis + rank : softmax.axis);
  params.last_axis = softmax.to_the_end ? rank - 1 : params.first_axis;
  params.logarithm = softmax.logarithm;
  const int out = d.make(l.result(group).name, d.desc(x).dtype, d.desc(x).shape, d.desc(x).layout.order);
  d.step(op.name, l.nodes(group), StageParams(params), {x}, {out});
  l.set(group.output, out);
  return ok();
}

Status lower_reduce(Lowering& l, const Group& group, const Op& op, const ReduceOp& reduce) {
  Draft& d = l.draft;
  const int x = l.computed(op.inputs[0]);
  if (reduce.axes.empty() && is_float(d.desc(x).dtype)) {  // nothing to reduce: the element-wise part of the kind alone
    PointwiseParams program{1, {{PointwiseOp::identity, 0, 0, 0, 0, 0}}};
    if (reduce.kind == ReduceKind::l1 || reduce.kind == ReduceKind::l2) program.program[0].op = PointwiseOp::abs;
    if (reduce.kind == ReduceKind::sum_square) program.program[0] = {PointwiseOp::mul, 0, 0, 0, 0, 0};
    if (reduce.kind == ReduceKind::log_sum) program.program[0].op = PointwiseOp::log;
    l.set(group.output, pointwise_step(l, op.name, l.nodes(group), program, {x}, d.desc(x).dtype, d.desc(x).shape));
    return ok();
  }
  ReduceParams params{reduce.kind, reduce.axes};
  Dims kept = d.desc(x).shape;
  for (int64_t axis : reduce.axes) kept[static_cast<int>(axis)] = 1;
  const int out = d.make(l.result(group).name, d.desc(x).dtype, kept, d.desc(x).layout.order);
  d.step(op.name, l.nodes(group), StageParams(params), {x}, {out});
  const Dims shape = l.result(group).shape;
  if (const auto view = reshape_view(d.desc(out), shape)) {
    l.set(group.output, d.view(out, *view));
  } else {
    const int plain = d.in_order(out, order_row_major(kept.size()), "layout");
    l.set(group.output, d.view(plain, *reshape_view(d.desc(plain), shape)));
  }
  return ok();
}

}  // namespace

Result<bool> lower_normal(Lowering& l, const Group& group) {
  const Op& op = l.op(group);
  Status done = ok();
  if (const auto* instance = std::get_if<InstanceNormalizationOp>(&op.params)) {
    done = lower_instance(l, group, op, instance->epsilon);
  } else if (const auto* norm = std::get_if<GroupNormalizationOp>(&op.params)) {
    done = lower_group_norm(l, group, op, *norm);
  } else if (const auto* layer = std::get_if<LayerNormalizationOp>(&op.params)) {
    done = lower_layer(l, group, op, *layer);
  } else if (const auto* mvn = std::get_if<MeanVarianceNormalizationOp>(&op.params)) {
    NormalizeParams params;
    params.axes = mvn->axes, params.epsilon = 1e-9, params.divisor = NormalizeDivisor::deviation;
    done = lower_bare(l, group, op, params);
  } else if (const auto* lp = std::get_if<LpNormalizationOp>(&op.params)) {
    NormalizeParams params;
    params.axes = {lp->axis}, params.epsilon = 0, params.center = false;
    params.divisor = lp->p == 1 ? NormalizeDivisor::l1 : NormalizeDivisor::l2;
    done = lower_bare(l, group, op, params);
  } else if (const auto* batch = std::get_if<BatchNormalizationOp>(&op.params)) {
    done = lower_batch(l, group, op, batch->epsilon);
  } else if (const auto* softmax = std::get_if<SoftmaxOp>(&op.params)) {
    done = lower_softmax(l, group, op, *softmax);
  } else if (const auto* reduce = std::get_if<ReduceOp>(&op.params)) {
    done = lower_reduce(l, group, op, *reduce);
  } else {
    return false;
  }
  if (!done.ok()) return done.take_error();
  return true;
}

}  // namespace sparkle
