// Pool, Resize, local response normalisation.
#include <algorithm>

#include "families/pointwise/pointwise.h"
#include "families/pool/pool.h"
#include "families/resize/resize.h"
#include "plan/lower/limits.h"
#include "plan/lower/lower.h"
#include "plan/lower/view.h"

namespace sparkle {
namespace {

// Positions that count rows before columns, made from those that count columns first: position = (d * H + h) * W + w of a plane
// becomes (w * H + h) * D + d.
int column_major(Lowering& l, const Op& op, int positions, const FeatureMap& x) {
  const std::string name = op.name + "/column_major";
  std::vector<int> operands{positions};
  for (int64_t size : {x.d * x.h * x.w, x.h * x.w, x.w, x.d, x.d * x.h})
    operands.push_back(
        l.draft.constant(name + "/" + std::to_string(operands.size()), HostTensor::of<int64_t>(DType::i64, {}, {size})));
  const PointwiseParams program{6,
                                {{PointwiseOp::mod, 0, 1, 0, 0, 0},     // 6: within the plane
                                 {PointwiseOp::sub, 0, 6, 0, 0, 0},     // 7: start of the plane
                                 {PointwiseOp::div, 6, 2, 0, 0, 0},     // 8: d
                                 {PointwiseOp::mod, 6, 2, 0, 0, 0},     // 9
                                 {PointwiseOp::div, 9, 3, 0, 0, 0},     // 10: h
                                 {PointwiseOp::mod, 9, 3, 0, 0, 0},     // 11: w
                                 {PointwiseOp::fma, 11, 5, 7, 0, 0},    // 12: w * H * D + start
                                 {PointwiseOp::fma, 10, 4, 12, 0, 0},   // 13: + h * D
                                 {PointwiseOp::add, 13, 8, 0, 0, 0}}};  // 14: + d
  return pointwise_step(l, name, {op.name}, program, operands, DType::i64, l.draft.desc(positions).shape);
}

Status lower_pool(Lowering& l, const Group& group, const Op& op, const PoolOp& pool) {
  Draft& d = l.draft;
  const Dims &x = l.graph.tensor(op.inputs[0]).shape, &y = l.result(group).shape;
  const int rank = x.size() - 2;
  if (rank < 1 || rank > kMostSpatialAxes)
    return Error{Reason::operator_not_served, "Node '" + op.name + "' (" + op.type + "): " + too_many_axes(rank) + "."};
  PoolParams params;
  params.kind = pool.kind, params.count_pad = pool.count_pad, params.p = pool.p;
  for (int i = 0; i < rank; ++i) {
    const auto s = static_cast<size_t>(3 - rank + i);
    params.window.filter[s] = pool.kernel[i], params.window.stride[s] = pool.strides[i];
    params.window.dilation[s] = pool.dilations[i];
    params.window.pad_begin[s] = pool.pads_begin[i], params.window.pad_end[s] = pool.pads_end[i];
  }
  const int in = d.channels_innermost(l.computed(op.inputs[0]));
  std::vector<int> outputs{d.make(l.result(group).name, d.desc(in).dtype, y, order_channels_last(y.size()))};
  if (op.outputs.size() > 1 && op.outputs[1] != kAbsent) {
    outputs.push_back(d.make(l.graph.tensor(op.outputs[1]).name, DType::i64, y, order_channels_last(y.size())));
  }
  d.step(op.name, l.nodes(group), StageParams(params), {in}, outputs);
  if (outputs.size() > 1)
    l.set(op.outputs[1], pool.storage_order == 0 ? outputs[1] : column_major(l, op, outputs[1], feature_map(d.desc(in))));
  l.set(group.output, outputs[0]);
  return ok();
}

// Wide filters are applied axis after axis, the one that shrinks most first: on several axes at once their lengths would
// multiply.
Status lower_antialias(Lowering& l, const Group& group, const Op& op, const ResizeParams& whole) {
  Draft& d = l.draft;
  const GraphTensor& result = l.result(group);
  const int rank = result.shape.size();
  int x = d.in_order(l.computed(op.inputs[0]), order_row_major(rank), "layout");
  std::vector<int> axes;
  for (int i = 0; i < rank; ++i) {
    const auto at = static_cast<size_t>(i);
    const bool cropped = !whole.roi_begin.empty() && (whole.roi_begin[at] != 0 || whole.roi_end[at] != 1);
    if (d.desc(x).shape[i] != result.shape[i] || whole.scales[at] != 1 || cropped) axes.push_back(i);
  }
  std::stable_sort(axes.begin(), axes.end(),
                   [&](int a, int b) { return whole.scales[static_cast<size_t>(a)] < whole.scales[static_cast<size_t>(b)]; });
  if (axes.empty()) axes.push_back(0);
  for (int axis : axes) {
    // A cropped axis may shrink as far as it likes whatever its size; the tables of taps must stay within reason.
    const double scale = whole.scales[static_cast<size_t>(axis)];
    if (static_cast<double>(result.shape[axis]) / scale > 0x1p26)
      return Error{Reason::operator_not_served, "Node '" + op.name + "' (" + op.type + "): antialiasing axis " +
                                                    std::to_string(axis) + " by a scale of " + std::to_string(scale) +
                                                    " takes more than 2^26 weights."};
  }
  const auto resize = [&](const ResizeParams& params, const Dims& shape, const std::string& part) {
    const int y = d.make(result.name + part, d.desc(x).dtype, shape, order_row_major(rank));
    d.step(op.name + part, l.nodes(group), StageParams(params), {x}, {y});
    x = y;
  };
  ResizeParams all = whole;
  all.antialias = true;
  if (axes.size() == 1 || !is_float(d.desc(x).dtype)) {  // integers are rounded once, at the end: no axis on its own
    resize(all, result.shape, "");
  } else {
    for (int axis : axes) {
      ResizeParams params = all;
      for (int i = 0; i < rank; ++i) {
        const auto at = static_cast<size_t>(i);
        if (i == axis) continue;
        params.scales[at] = 1;
        if (!params.roi_begin.empty()) params.roi_begin[at] = 0, params.roi_end[at] = 1;
      }
      Dims shape = d.desc(x).shape;
      shape[axis] = result.shape[axis];
      resize(params, shape, "/" + std::to_string(axis));
    }
  }
  l.set(group.output, x);
  return ok();
}

Status lower_resize(Lowering& l, const Group& group, const Op& op, const ResizeOp& resize) {
  Draft& d = l.draft;
  if (resize.antialias && resize.params.mode != ResizeMode::nearest) {
    return lower_antialias(l, group, op, resize.params);
  }
  const Dims &x = l.graph.tensor(op.inputs[0]).shape, &y = l.result(group).shape;
  int in = l.computed(op.inputs[0]);
  Dims order = order_row_major(y.size());
  if (x.size() >= 3 && x.size() <= 5 && x[0] == y[0] && x[1] == y[1] && !is_row_major(x, d.desc(in).layout))
    in = d.channels_innermost(in), order = order_channels_last(y.size());
  const int out = d.make(l.result(group).name, d.desc(in).dtype, y, order);
  d.step(op.name, l.nodes(group), StageParams(resize.params), {in}, {out});
  l.set(group.output, out);
  return ok();
}

// x / (bias + alpha/size * sum of squares over `size` neighbouring channels)^beta: squares, an average pool whose window slides
// along the channels (pixels take the place of channels, which NCHW already is), and one program for the rest.
Status lower_local_response(Lowering& l, const Group& group, const Op& op, const LocalResponseOp& lrn) {
  Draft& d = l.draft;
  const GraphTensor& result = l.result(group);
  const Dims shape = result.shape;
  const int x = d.in_order(l.computed(op.inputs[0]), order_row_major(shape.size()), "layout");
  const int squares = pointwise_step(l, result.name + "/squares", {op.name}, {1, {{PointwiseOp::mul, 0, 0, 0, 0, 0}}}, {x},
                                     d.desc(x).dtype, shape);
  const int64_t pixels = shape.product() / std::max<int64_t>(1, shape[0] * shape[1]);
  TensorDesc along{d.desc(x).dtype, {shape[0], pixels, shape[1]}, {}};
  along.layout = dense(along.shape, {0, 2, 1});
  PoolParams pool;
  pool.kind = PoolKind::average, pool.count_pad = true;
  pool.window.filter[2] = lrn.size;
  pool.window.pad_begin[2] = (lrn.size - 1) / 2, pool.window.pad_end[2] = lrn.size / 2;
  const int sums = d.make(result.name + "/mean", d.desc(x).dtype, shape, order_row_major(shape.size()));
  d.step(op.name + "/mean", {op.name}, StageParams(pool), {d.view(squares, along)}, {d.view(sums, along)});
  const PointwiseParams rest{2,
                             {{PointwiseOp::affine, 1, 0, 0, lrn.alpha, lrn.bias},
                              {PointwiseOp::constant, 0, 0, 0, -lrn.beta, 0},
                              {PointwiseOp::pow, 2, 3, 0, 0, 0},
                              {PointwiseOp::mul, 0, 4, 0, 0, 0}}};
  l.set(group.output, pointwise_step(l, result.name, l.nodes(group), rest, {x, sums}, d.desc(x).dtype, shape));
  l.draft.steps.back().name = op.name;
  return ok();
}

}  // namespace

Result<bool> lower_window(Lowering& l, const Group& group) {
  const Op& op = l.op(group);
  Status done = ok();
  if (const auto* pool = std::get_if<PoolOp>(&op.params)) {
    done = lower_pool(l, group, op, *pool);
  } else if (const auto* resize = std::get_if<ResizeOp>(&op.params)) {
    done = lower_resize(l, group, op, *resize);
  } else if (const auto* lrn = std::get_if<LocalResponseOp>(&op.params)) {
    done = lower_local_response(l, group, op, *lrn);
  } else {
    return false;
  }
  if (!done.ok()) return done.take_error();
  return true;
}

}  // namespace sparkle
