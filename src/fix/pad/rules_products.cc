// Products: their weights take the channels of what they read, and make new ones.
#include "fix/pad/walk.h"

namespace sparkle::fix {
namespace {

void add_product(Walk& w, double macs, const Runs& in, const Runs& out, bool one = false, int64_t groups = 1) {
  w.plan.products.push_back({w.at(), w.label(), macs, in, out, one, groups});
  if (one) return;  // depthwise layers run at their own rate whatever the channels are
  w.plan.wanted.push_back(in);
  w.plan.wanted.push_back(out);
}

// A depthwise convolution gives each channel to itself.
void depthwise(Walk& w, int channel_axis, double macs) {
  const auto* x = w.axis(0);
  if (!x || x->axis != 1) return w.block(0), add_product(w, macs, {}, {}, true);
  w.edit(1, channel_axis, x->runs);
  if (w.given(2)) w.edit(2, 0, x->runs);
  w.plan.groups.push_back({w.at(), x->runs});
  add_product(w, macs, x->runs, x->runs, true);
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
  const Dims& points = transposed ? w.shape(0) : y;                 // where the filter is laid on
  double macs = static_cast<double>(groups * C * K * points[0]);
  for (int a = 2; a < points.size(); ++a) macs *= static_cast<double>(points[a] * weights[a]);
  if (groups > 1 && C == 1 && K == 1) return depthwise(w, 0, macs);
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
  add_product(w, macs, in, made, false, groups);
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
  add_product(w, static_cast<double>(y[0] * y[1] * b[turned_b ? 1 : 0]), in, out);
  w.set({1, out, zero});
}

// Two tensors that both depend on the data, as in attention: the sum runs over channels of both, or leaves those of one.
void matmul_of_two(Walk& w) {
  const Dims a = w.shape(0), b = w.shape(1), y = w.out_shape();
  if (a.size() < 2 || b.size() < 2 || y.size() < 2) return w.block_all();
  const auto *x = w.axis(0), *z = w.axis(1);
  const bool x_sum = x && x->axis == a.size() - 1, z_sum = z && z->axis == b.size() - 2;
  if (x_sum && z_sum && (x->zero || z->zero)) {
    w.plan.channels.unify(x->runs, z->runs);
    w.plan.wanted.push_back(x->runs);
    return;
  }
  const bool x_rows = x && x->axis == a.size() - 2, z_columns = z && z->axis == b.size() - 1;
  if (x && !(x_rows && !z)) w.block(0), x = nullptr;
  if (z && !z_columns) w.block(1), z = nullptr;
  if (x) w.set({y.size() - 2, x->runs, x->zero});
  else if (z) w.set({y.size() - 1, z->runs, z->zero}), w.plan.wanted.push_back(z->runs);
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
  add_product(w, static_cast<double>(y.product() * b[0]), in, out);
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
