// Products: their weights take the channels of what they read, and make new ones.
#include <algorithm>

#include "fix/pad/walk.h"

namespace sparkle::fix {
namespace {

void add_product(Walk& w, const Problem& problem, const Runs& in, const Runs& out, bool one = false) {
  const double macs = problem.nominal_flops() / 2;
  w.plan.products.push_back({w.at(), w.label(), macs, in, out, one, problem.groups, problem});
  if (one) return;  // depthwise layers run at their own rate whatever the channels are
  w.plan.wanted.push_back(in);
  w.plan.wanted.push_back(out);
}

// As far as the cost of a convolution goes: padding is shared out evenly.
Problem problem_of_convolution(const Walk& w, bool transposed, int64_t c, int64_t k, int64_t groups) {
  const Dims x = w.shape(0), y = w.out_shape(), weights = w.shape(1);
  const auto strides = ints_attribute(w.node(), "strides"), dilations = ints_attribute(w.node(), "dilations");
  Problem p;
  p.kind = transposed ? ProblemKind::conv_transpose : ProblemKind::conv;
  p.rank = std::clamp(x.size() - 2, 1, 3);
  p.n = x[0], p.c = c * groups, p.k = k * groups, p.groups = groups;
  for (int i = 0; i < p.rank; ++i) {
    const auto s = static_cast<size_t>(3 - p.rank + i), a = static_cast<size_t>(i);
    p.in[s] = x[2 + i], p.out[s] = y[2 + i], p.window.filter[s] = weights[2 + i];
    if (strides && a < strides->size()) p.window.stride[s] = (*strides)[a];
    if (dilations && a < dilations->size()) p.window.dilation[s] = (*dilations)[a];
    const int64_t positions = transposed ? p.in[s] : p.out[s], elements = transposed ? p.out[s] : p.in[s];
    const int64_t padding = std::max<int64_t>(0, p.window.span(s, positions) - elements);
    p.window.pad_begin[s] = padding / 2, p.window.pad_end[s] = padding - padding / 2;
  }
  return p;
}

Problem problem_of_matrices(int64_t batch, int64_t rows, int64_t columns, int64_t depth) {
  Problem p;
  p.kind = ProblemKind::matmul;
  p.batch = batch, p.rows = rows, p.columns = columns, p.depth = depth;
  return p;
}

// A depthwise convolution gives each channel to itself.
void depthwise(Walk& w, int channel_axis, const Problem& problem) {
  const auto* x = w.axis(0);
  if (!x || x->axis != 1) return w.block(0), add_product(w, problem, {}, {}, true);
  w.edit(1, channel_axis, x->runs);
  if (w.given(2)) w.edit(2, 0, x->runs);
  w.plan.groups.push_back({w.at(), x->runs});
  add_product(w, problem, x->runs, x->runs, true);
  w.set({1, x->runs, true});
}

void convolution(Walk& w) {
  const bool transposed = w.node().op_type() == "ConvTranspose";
  const Dims weights = w.shape(1), y = w.out_shape();
  const int64_t groups = int_attribute(w.node(), "group", 1);
  if (!w.constant(1) || (w.given(2) && !w.constant(2)) || weights.size() < 3 || y.size() < 3 || groups < 1)
    return w.block_all();
  const int64_t C = transposed ? weights[0] / groups : weights[1],
                K = transposed ? weights[1] : weights[0] / groups;  // of a group
  const Problem problem = problem_of_convolution(w, transposed, C, K, groups);
  if (groups > 1 && C == 1 && K == 1) return depthwise(w, 0, problem);
  const auto* x = w.axis(0);
  if (x && x->axis != 1) w.block(0), x = nullptr;
  Runs in;
  if (groups == 1) {
    if (x) in = x->runs;
    else if (w.from_inputs_alone(0) && w.shape(0).size() == weights.size()) in = w.enter(0, 1);
  } else if (x) {
    in = w.plan.channels.repeated(x->runs, groups);
    if (in.empty() || transposed) w.block(0), in.clear();
  }
  Runs made = w.plan.channels.add(K, w.label(), groups > 1 && transposed), out;
  for (int64_t g = 0; g < groups; ++g) out.insert(out.end(), made.begin(), made.end());
  if (!in.empty()) w.edit(1, transposed ? 0 : 1, in);
  w.edit(1, transposed ? 1 : 0, transposed ? made : out);
  if (w.given(2)) w.edit(2, 0, out);
  add_product(w, problem, in, made);
  w.set({1, out, true});
}

void gemm(Walk& w) {
  const Dims a = w.shape(0), b = w.shape(1), y = w.out_shape();
  const bool turned_a = int_attribute(w.node(), "transA", 0) != 0, turned_b = int_attribute(w.node(), "transB", 0) != 0;
  if (!w.constant(1) || (w.given(2) && !w.constant(2)) || a.size() != 2 || b.size() != 2 || y.size() != 2) return w.block_all();
  const auto* x = w.axis(0);
  if (x && (turned_a || x->axis != 1)) w.block(0), x = nullptr;
  Runs in;
  if (x) in = x->runs;
  else if (w.from_inputs_alone(0) && !turned_a) in = w.enter(0, 1);
  const Runs out = w.plan.channels.add(y[1], w.label(), false);
  if (!in.empty()) w.edit(1, turned_b ? 1 : 0, in);
  w.edit(1, turned_b ? 0 : 1, out);
  bool zero = true;
  if (w.given(2)) {
    const Dims c = w.shape(2);
    if (c.size() > 0 && c.back() == y[1]) w.edit(2, c.size() - 1, out);
    else zero = false;  // one value for all columns
  }
  add_product(w, problem_of_matrices(1, y[0], y[1], b[turned_b ? 1 : 0]), in, out);
  w.set({1, out, zero});
}

// Two tensors that both depend on the data, as in attention: the sum runs over channels of both, or leaves those of one.
void matmul_of_two(Walk& w) {
  const Dims a = w.shape(0), b = w.shape(1), y = w.out_shape();
  if (a.size() < 2 || b.size() < 2 || y.size() < 2) return w.block_all();
  const int64_t rows = y[y.size() - 2], columns = y.back();
  const Problem problem = problem_of_matrices(y.product() / std::max<int64_t>(1, rows * columns), rows, columns, a.back());
  const auto *x = w.axis(0), *z = w.axis(1);
  const bool x_sum = x && x->axis == a.size() - 1, z_sum = z && z->axis == b.size() - 2;
  if (x_sum && z_sum && (x->zero || z->zero)) {
    w.plan.channels.unify(x->runs, z->runs);
    return add_product(w, problem, x->runs, {});
  }
  const bool x_rows = x && x->axis == a.size() - 2, z_columns = z && z->axis == b.size() - 1;
  if (x && !(x_rows && !z)) w.block(0), x = nullptr;
  if (z && !z_columns) w.block(1), z = nullptr;
  if (x) w.set({y.size() - 2, x->runs, x->zero});
  else if (z) w.set({y.size() - 1, z->runs, z->zero}), add_product(w, problem, {}, z->runs);
}

void matmul(Walk& w) {
  if (!w.constant(0) && !w.constant(1)) return matmul_of_two(w);
  const Dims a = w.shape(0), b = w.shape(1), y = w.out_shape();
  if (!w.constant(1) || w.constant(0) || b.size() != 2 || a.size() < 2 || y.size() != a.size()) return w.block_all();
  const int last = a.size() - 1;
  const auto* x = w.axis(0);
  if (x && x->axis != last) w.block(0), x = nullptr;
  Runs in;
  if (x) in = x->runs;
  else if (w.from_inputs_alone(0) && a.size() == 2) in = w.enter(0, last);
  const Runs out = w.plan.channels.add(b[1], w.label(), false);
  if (!in.empty()) w.edit(1, 0, in);
  w.edit(1, 1, out);
  add_product(w, problem_of_matrices(1, y.product() / std::max<int64_t>(1, b[1]), b[1], b[0]), in, out);
  w.set({last, out, true});
}

}  // namespace

Rule product_rule(const std::string& type) {
  if (type == "Conv" || type == "ConvTranspose") return convolution;
  if (type == "Gemm") return gemm;
  if (type == "MatMul") return matmul;
  return nullptr;
}

}  // namespace sparkle::fix
