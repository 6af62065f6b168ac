// Conv, ConvTranspose, MatMul, Gemm with what was fused behind them.
#include "families/pointwise/pointwise.h"
#include "plan/lower/limits.h"
#include "plan/lower/lower.h"
#include "plan/lower/view.h"

namespace sparkle {
namespace {

// What a post-op reads beside the sum, broadcast to the result's shape y and seen in that of the step.
int post_op_operand(Lowering& l, int v, const Dims& y, const Dims& shape, bool window) {
  Draft& d = l.draft;
  if (window && d.desc(v).shape == y) return d.channels_innermost(v);
  v = d.view(v, broadcast_view(d.desc(v), y));
  if (window) return v;
  if (const auto same = reshape_view(d.desc(v), shape)) return d.view(v, *same);
  v = d.in_order(v, order_row_major(y.size()), "layout");
  return d.view(v, *reshape_view(d.desc(v), shape));
}

void append_epilogue(Lowering& l, const Group& group, Problem& problem, const Dims& shape, bool window,
                     std::vector<int>& inputs) {
  problem.epilogue.activation = group.epilogue.activation;
  problem.epilogue.a = group.epilogue.a, problem.epilogue.b = group.epilogue.b;
  problem.epilogue.residuals_before += group.epilogue.residuals_before;
  problem.epilogue.residuals_after += group.epilogue.residuals_after;
  for (TensorId id : group.residuals) {
    int v = l.computed(id);
    if (window) {
      v = l.draft.channels_innermost(v);
    } else {
      v = l.draft.in_order(v, order_row_major(l.draft.desc(v).shape.size()), "layout");
      if (const auto same = reshape_view(l.draft.desc(v), shape)) v = l.draft.view(v, *same);
    }
    inputs.push_back(v);
  }
  problem.epilogue.post_op = group.epilogue.post_op;
  for (TensorId id : group.behind) inputs.push_back(post_op_operand(l, l.computed(id), l.result(group).shape, shape, window));
}

// What 8-bit floats were scaled by becomes a factor of the sums.
void append_scales(Draft& d, const Op& op, const Float8Factors& factors, Problem& problem, std::vector<int>& inputs) {
  problem.dtype = name_of(d.desc(inputs[0]).dtype);
  problem.epilogue.scale = true;
  inputs.push_back(d.constant(op.name + "/scales", factors.scales));
}

// What a problem says its operands are: f16 or bf16 where both are in the network - their values in f32 then are numbers of 16
// bits, or were left unrounded to spare steps -, else the type that they are computed in.
std::string problem_type(const Lowering& l, const Op& op, DType computed) {
  const DType type = l.graph.tensor(op.inputs[0]).dtype;
  const bool narrow = (type == DType::f16 || type == DType::bf16) && l.graph.tensor(op.inputs[1]).dtype == type;
  return std::string(name_of(narrow ? type : computed));
}

}  // namespace

Result<Problem> conv_problem(const Lowering& l, const Op& op, const ConvOp& conv) {
  const Dims &x = l.graph.tensor(op.inputs[0]).shape, &w = l.graph.tensor(op.inputs[1]).shape,
             &y = l.graph.tensor(op.outputs[0]).shape;
  Problem p;
  p.kind = conv.transposed ? ProblemKind::conv_transpose : ProblemKind::conv;
  p.rank = x.size() - 2;
  if (p.rank < 1 || p.rank > kMostSpatialAxes)
    return Error{Reason::operator_not_served, "Node '" + op.name + "' (" + op.type + "): " + too_many_axes(p.rank) + "."};
  p.n = x[0], p.c = x[1], p.k = y[1], p.groups = conv.groups;
  for (int i = 0; i < p.rank; ++i) {
    const auto s = static_cast<size_t>(3 - p.rank + i);
    p.in[s] = x[2 + i], p.out[s] = y[2 + i], p.window.filter[s] = w[2 + i];
    p.window.stride[s] = conv.strides[i], p.window.dilation[s] = conv.dilations[i];
    p.window.pad_begin[s] = conv.pads_begin[i], p.window.pad_end[s] = conv.pads_end[i];
  }
  return p;
}

namespace {

Status lower_conv(Lowering& l, const Group& group, const Op& op, const ConvOp& conv) {
  Draft& d = l.draft;
  SPARKLE_TRY(p, conv_problem(l, op, conv));
  const Dims& y = l.graph.tensor(op.outputs[0]).shape;
  const DType type = l.computed_type(l.result(group).dtype);
  p.dtype = problem_type(l, op, type);
  const auto float8 = l.float8.factors_of(op);
  const auto factor = [&](size_t i) { return float8 ? l.value(i == 0 ? float8->x : float8->w) : l.computed(op.inputs[i]); };
  std::vector<int> inputs{d.channels_innermost(factor(0)), factor(1)};
  if (float8) append_scales(d, op, *float8, p, inputs);
  if (op.inputs.size() > 2 && op.inputs[2] != kAbsent) {
    p.epilogue.bias = true;
    inputs.push_back(d.in_order(l.computed(op.inputs[2]), {0}, "layout"));
  }
  append_epilogue(l, group, p, y, true, inputs);
  const int out = d.make(l.result(group).name, type, y, order_channels_last(y.size()));
  d.step(op.name, l.nodes(group), p, inputs, {out});
  l.set(group.output, out);
  return ok();
}

}  // namespace

MatrixProduct matrix_product(Draft& d, int a, int b, const MatMulOp& matmul) {
  TensorDesc da = d.desc(a), db = d.desc(b);
  if (matmul.transpose_a) da = transpose_view(da, {1, 0});
  if (matmul.transpose_b) db = transpose_view(db, {1, 0});
  if (da.shape.size() == 1) da = *reshape_view(da, {1, da.shape[0]});
  if (db.shape.size() == 1) db = *reshape_view(db, {db.shape[0], 1});
  const int64_t m = da.shape[da.shape.size() - 2], k = da.shape.back(), n = db.shape.back();
  Dims batch;  // broadcast batch axes
  const int rank = std::max(da.shape.size(), db.shape.size());
  for (int i = 0; i < rank - 2; ++i) {
    const int ia = i - (rank - da.shape.size()), ib = i - (rank - db.shape.size());
    const int64_t sa = ia >= 0 ? da.shape[ia] : 1, sb = ib >= 0 ? db.shape[ib] : 1;
    batch.push_back(sa == 1 ? sb : sa);
  }
  Problem p;
  p.kind = ProblemKind::matmul;
  p.rank = 2;
  p.batch = batch.product(), p.rows = m, p.columns = n, p.depth = k;
  const bool one_matrix = db.elements() == k * n;
  const auto rows_merged = one_matrix ? reshape_view(da, {p.batch * m, k}) : std::nullopt;
  Dims shape;  // of the product inside the step
  if (rows_merged) {
    p.rows = p.batch * m, p.batch = 1;
    shape = {p.rows, n};
    a = d.view(a, *rows_merged);
    b = d.view(b, *reshape_view(db, {k, n}));
  } else {
    shape = batch;
    shape.push_back(m), shape.push_back(n);
    Dims shape_a = batch, shape_b = batch;
    shape_a.push_back(m), shape_a.push_back(k);
    shape_b.push_back(k), shape_b.push_back(n);
    a = d.view(a, broadcast_view(da, shape_a));
    b = d.view(b, broadcast_view(db, shape_b));
  }
  return {p, a, b, shape};
}

namespace {

Status lower_matmul(Lowering& l, const Group& group, const Op& op, const MatMulOp& matmul) {
  Draft& d = l.draft;
  const auto float8 = l.float8.factors_of(op);
  const auto factor = [&](size_t i) {
    if (!float8) return l.computed(op.inputs[i]);
    const int v = l.value(i == 0 ? float8->x : float8->w);
    return d.in_order(v, order_row_major(d.desc(v).shape.size()), "layout");
  };
  auto [p, a, b, shape] = matrix_product(d, factor(0), factor(1), matmul);
  const DType type = float8 ? DType::f32 : d.desc(a).dtype;
  p.dtype = problem_type(l, op, type);
  const int64_t n = shape.back();
  const Dims y = l.graph.tensor(op.outputs[0]).shape;
  std::vector<int> inputs{a, b};
  if (float8) append_scales(d, op, *float8, p, inputs);
  p.epilogue.alpha = matmul.gemm ? matmul.alpha : 1;
  if (op.inputs.size() > 2 && op.inputs[2] != kAbsent && matmul.beta != 0) {
    int c = l.computed(op.inputs[2]);
    if (matmul.gemm && matmul.beta != 1) {
      PointwiseParams scale{1, {{PointwiseOp::affine, 0, 0, 0, matmul.beta, 0}}};
      c = pointwise_step(l, op.name + "/beta", {op.name}, scale, {c}, type, d.desc(c).shape);
    }
    const TensorDesc dc = d.desc(c);
    if (dc.elements() == n && (dc.shape.empty() || dc.shape.back() == n)) {
      p.epilogue.bias = true;
      inputs.push_back(d.view(d.in_order(c, order_row_major(dc.shape.size()), "layout"),
                              {dc.dtype, {n}, {Dims{0}, Dims{1}, dc.layout.offset}}));
    } else {
      p.epilogue.residuals_before = 1;
      inputs.push_back(d.view(c, broadcast_view(dc, shape)));
    }
  }
  append_epilogue(l, group, p, shape, false, inputs);
  const int out = d.make(l.result(group).name, type, shape, order_row_major(shape.size()));
  d.step(op.name, l.nodes(group), p, inputs, {out});
  l.set(group.output, d.view(out, *reshape_view(d.desc(out), y)));
  return ok();
}

}  // namespace

Status lower_anchor(Lowering& l, const Group& group) {
  const Op& op = l.graph.ops[static_cast<size_t>(group.anchor)];
  const auto* conv = std::get_if<ConvOp>(&op.params);
  SPARKLE_CHECK(conv ? lower_conv(l, group, op, *conv) : lower_matmul(l, group, op, std::get<MatMulOp>(op.params)));
  l.draft.steps.back().anchor = group.anchor;
  return ok();
}

}  // namespace sparkle
