// Activations as exporters write them in small steps, recognised as one. Every pattern is a product; a product's factors are
// collected first (constants into one number), so that the order and nesting of its Mul and Div do not matter.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "graph/rewrites/rewrites.h"
#include "graph/evaluate/values.h"

namespace sparkle {
namespace {

struct Product {
  double constant = 1;
  std::vector<TensorId> factors;
};

bool close(double a, double b) { return std::abs(a - b) <= 2e-5 * std::abs(b); }

const PointwiseNode* node_of(Editor& e, TensorId id, PointwiseOp op) {
  const auto* node = e.made_by<PointwiseNode>(id);
  return node && node->op == op ? node : nullptr;
}
const Op& producer_of(Editor& e, TensorId id) { return e.op(e.producer(id)); }

// A float constant with one element that does not raise the rank of what it is combined with.
bool read_scalar(Editor& e, TensorId id, TensorId other, double& value) {
  const HostTensor* c = e.constant(id);
  if (!c || c->elements() != 1 || !is_float(c->dtype)) return false;
  if (c->shape.size() > 0 && !(other != kAbsent && e.tensor(other).known && e.tensor(other).shape.size() >= c->shape.size()))
    return false;
  value = scalar(*c);
  return true;
}

void collect(Editor& e, TensorId id, bool root, int depth, Product& p) {
  const auto* node = e.made_by<PointwiseNode>(id);
  const bool product =
      node && (node->op == PointwiseOp::mul || node->op == PointwiseOp::div) && producer_of(e, id).inputs.size() == 2;
  if (product && depth > 0 && (root || e.single_use(id))) {
    const TensorId a = producer_of(e, id).inputs[0], b = producer_of(e, id).inputs[1];
    double c = 0;
    if (read_scalar(e, b, a, c)) {
      p.constant *= node->op == PointwiseOp::div ? 1 / c : c;
      return collect(e, a, false, depth - 1, p);
    }
    if (node->op == PointwiseOp::mul) {
      if (read_scalar(e, a, b, c)) {
        p.constant *= c;
        return collect(e, b, false, depth - 1, p);
      }
      collect(e, a, false, depth - 1, p);
      return collect(e, b, false, depth - 1, p);
    }
  }
  if (node && node->op == PointwiseOp::affine && node->b == 0 && depth > 0 && (root || e.single_use(id))) {
    p.constant *= node->a;
    return collect(e, producer_of(e, id).inputs[0], false, depth - 1, p);
  }
  p.factors.push_back(id);
}

Product product_of(Editor& e, TensorId id) {
  Product p;
  collect(e, id, true, 5, p);
  return p;
}

// id = x + c, with c near `wanted`.
bool is_sum(Editor& e, TensorId id, double wanted, TensorId& x) {
  if (!node_of(e, id, PointwiseOp::add)) return false;
  const Op& op = producer_of(e, id);
  for (size_t side = 0; side < 2; ++side) {
    double c = 0;
    if (!read_scalar(e, op.inputs[side], op.inputs[1 - side], c) || !close(c, wanted)) continue;
    x = op.inputs[1 - side];
    return true;
  }
  return false;
}

// id = unary(x)
bool is_unary(Editor& e, TensorId id, PointwiseOp op, TensorId& x) {
  if (!node_of(e, id, op) || producer_of(e, id).inputs.size() != 1) return false;
  x = producer_of(e, id).inputs[0];
  return true;
}

// id = c * x
bool is_scaled(Editor& e, TensorId id, double c, TensorId x) {
  const Product p = product_of(e, id);
  return p.factors == std::vector<TensorId>{x} && close(p.constant, c);
}

// id = c * x^power
bool is_power(Editor& e, TensorId id, double c, TensorId x, int power) {
  const Product p = product_of(e, id);
  if (!close(p.constant, c)) return false;
  int total = 0;
  for (TensorId factor : p.factors) {
    double exponent = 0;
    if (factor == x) {
      ++total;
    } else if (node_of(e, factor, PointwiseOp::pow) && producer_of(e, factor).inputs[0] == x &&
               read_scalar(e, producer_of(e, factor).inputs[1], x, exponent)) {
      if (exponent != std::floor(exponent) || std::abs(exponent) > 8) return false;
      total += static_cast<int>(exponent);
    } else {
      return false;
    }
  }
  return total == power;
}

// id = clip(x + 3, 0, 6)
bool is_clipped(Editor& e, TensorId id, TensorId& x) {
  const auto* clip = node_of(e, id, PointwiseOp::clip);
  return clip && producer_of(e, id).inputs.size() == 1 && clip->a == 0 && clip->b == 6 &&
         is_sum(e, producer_of(e, id).inputs[0], 3, x);
}

// id = 1 + erf(x / sqrt 2)
bool is_erf_part(Editor& e, TensorId id, TensorId x) {
  TensorId erf = kAbsent, inside = kAbsent;
  return is_sum(e, id, 1, erf) && is_unary(e, erf, PointwiseOp::erf, inside) &&
         is_scaled(e, inside, 1 / std::numbers::sqrt2, x);
}

// id = 1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)), or with x (1 + 0.044715 x^2)
bool is_tanh_part(Editor& e, TensorId id, TensorId x) {
  constexpr double kCubic = 0.044715;
  TensorId tanh = kAbsent, inside = kAbsent;
  if (!is_sum(e, id, 1, tanh) || !is_unary(e, tanh, PointwiseOp::tanh, inside)) return false;
  const Product p = product_of(e, inside);
  if (!close(p.constant, std::sqrt(2 / std::numbers::pi))) return false;
  if (p.factors.size() == 1 && node_of(e, p.factors[0], PointwiseOp::add)) {
    const Op& sum = producer_of(e, p.factors[0]);
    for (size_t side = 0; side < 2; ++side)
      if (sum.inputs[side] == x && is_power(e, sum.inputs[1 - side], kCubic, x, 3)) return true;
  }
  if (p.factors.size() == 2) {
    for (size_t side = 0; side < 2; ++side) {
      TensorId square = kAbsent;
      if (p.factors[side] == x && is_sum(e, p.factors[1 - side], 1, square) && is_power(e, square, kCubic, x, 2)) return true;
    }
  }
  return false;
}

bool is_softplus_tanh(Editor& e, TensorId id, TensorId x) {
  TensorId softplus = kAbsent, inside = kAbsent;
  return is_unary(e, id, PointwiseOp::tanh, softplus) && is_unary(e, softplus, PointwiseOp::softplus, inside) && inside == x;
}

// The activation that a product x * other (times the constant) is, if any.
bool recognise(Editor& e, double constant, TensorId x, TensorId other, PointwiseNode& result) {
  TensorId inside = kAbsent;
  if (close(constant, 1)) {
    if (is_unary(e, other, PointwiseOp::sigmoid, inside) && inside == x) result = {PointwiseOp::silu};
    else if (const auto* hard = node_of(e, other, PointwiseOp::hard_sigmoid);
             hard && producer_of(e, other).inputs[0] == x && close(hard->a, 1.0 / 6) && hard->b == 0.5)
      result = {PointwiseOp::hard_swish};
    else if (is_softplus_tanh(e, other, x)) result = {PointwiseOp::mish};
    else return false;
    return true;
  }
  if (close(constant, 1.0 / 6) && is_clipped(e, other, inside) && inside == x) {
    result = {PointwiseOp::hard_swish};
    return true;
  }
  if (!close(constant, 0.5)) return false;
  if (is_erf_part(e, other, x)) result = {PointwiseOp::gelu};
  else if (is_tanh_part(e, other, x)) result = {PointwiseOp::gelu_tanh};
  else return false;
  return true;
}

bool has_doubles(const Graph& graph) {
  for (const GraphTensor& t : graph.tensors)
    if (t.dtype == DType::f64 || (t.constant && t.constant->dtype == DType::f64)) return true;
  return std::any_of(graph.ops.begin(), graph.ops.end(), [](const Op& op) {
    const auto* cast = std::get_if<CastOp>(&op.params);
    return cast && cast->to == DType::f64;
  });
}

}  // namespace

// Constants are compared with a slack for exporters that print five digits: of doubles each digit counts. Where types are not
// known yet, a graph with doubles anywhere waits until they are.
bool match_activations(Editor& e) {
  bool changed = false;
  const bool doubles = has_doubles(e.graph());
  for (int i = 0; i < e.count(); ++i) {
    const auto* node = e.erased(i) ? nullptr : std::get_if<PointwiseNode>(&e.op(i).params);
    if (!node || (node->op != PointwiseOp::mul && node->op != PointwiseOp::div && node->op != PointwiseOp::affine)) continue;
    const GraphTensor& y = e.tensor(e.op(i).outputs[0]);
    if (y.known ? y.dtype == DType::f64 : doubles) continue;
    const Product p = product_of(e, e.op(i).outputs[0]);
    PointwiseNode result;
    TensorId x = kAbsent;
    if (p.factors.size() == 1 && close(p.constant, 1.0 / 6) && is_clipped(e, p.factors[0], x)) {
      result = {PointwiseOp::hard_sigmoid, 1.0 / 6, 0.5};
    } else if (p.factors.size() == 2) {
      x = p.factors[0];
      if (!recognise(e, p.constant, x, p.factors[1], result)) {
        x = p.factors[1];
        if (!recognise(e, p.constant, x, p.factors[0], result)) continue;
      }
    } else {
      continue;
    }
    e.op(i).params = result;
    e.op(i).type = name_of(result.op);
    e.set_inputs(i, {x});
    changed = true;
  }
  return changed;
}

}  // namespace sparkle
