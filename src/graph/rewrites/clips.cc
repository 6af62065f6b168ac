// Clip's bounds given as constants become parameters; Clip and Relu in a row merge; a Clip at zero alone is a Relu.
#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/rewrites/rewrites.h"
#include "graph/evaluate/values.h"

namespace sparkle {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool resolve_bounds(Editor& e, int i, PointwiseNode& clip) {
  const Op& op = e.op(i);
  if (op.inputs.size() < 2) return false;
  double bounds[] = {-kInfinity, kInfinity};
  for (size_t k = 1; k < op.inputs.size() && k < 3; ++k) {
    if (op.inputs[k] == kAbsent) continue;
    const HostTensor* value = e.constant(op.inputs[k]);
    // Bounds of integers need not fit a double; bind() turns them into a maximum and a minimum.
    if (!value || value->elements() != 1 || !is_float(value->dtype)) return false;
    bounds[k - 1] = scalar(*value);
    if (std::isnan(bounds[k - 1])) return false;  // bind() splits it: all becomes NaN
  }
  clip.a = std::min(bounds[0], bounds[1]), clip.b = bounds[1];
  e.set_inputs(i, {op.inputs[0]});
  return true;
}

// min(max(x, lower), upper), the bounds of a Relu or a Clip with known bounds.
bool bounds_of(const PointwiseNode* node, double& lower, double& upper) {
  if (!node || (node->op != PointwiseOp::relu && node->op != PointwiseOp::clip)) return false;
  lower = node->op == PointwiseOp::relu ? 0 : node->a;
  upper = node->op == PointwiseOp::relu ? kInfinity : node->b;
  return true;
}

bool merge(Editor& e, int i) {
  auto& outer = std::get<PointwiseNode>(e.op(i).params);
  const TensorId between = e.op(i).inputs[0];
  const int at = e.producer(between);
  if (at < 0 || !e.single_use(between) || e.op(at).inputs.size() != 1) return false;
  double low = 0, high = 0, inner_low = 0, inner_high = 0;
  if (!bounds_of(&outer, low, high) || !bounds_of(std::get_if<PointwiseNode>(&e.op(at).params), inner_low, inner_high))
    return false;
  const auto clamp = [&](double v) { return std::min(std::max(v, low), high); };
  if (inner_low > inner_high) return false;
  outer = {PointwiseOp::clip, clamp(inner_low), clamp(inner_high)};
  e.set_input(i, 0, e.op(at).inputs[0]);
  e.erase(at);
  return true;
}

}  // namespace

bool resolve_clips(Editor& e) {
  bool changed = false;
  for (int i = 0; i < e.count(); ++i) {
    if (e.erased(i)) continue;
    auto* node = std::get_if<PointwiseNode>(&e.op(i).params);
    if (!node || (node->op != PointwiseOp::clip && node->op != PointwiseOp::relu) || e.op(i).inputs.empty()) continue;
    if (node->op == PointwiseOp::clip) changed = resolve_bounds(e, i, *node) || changed;
    if (e.op(i).inputs.size() != 1) continue;
    while (merge(e, i)) changed = true;
    if (node->op == PointwiseOp::clip && node->a == 0 && node->b == kInfinity)
      *node = {PointwiseOp::relu, 0, 0}, changed = true;
    if (node->op == PointwiseOp::clip && node->a == -kInfinity && node->b == kInfinity)
      *node = {PointwiseOp::identity, 0, 0}, changed = true;
  }
  return changed;
}

}  // namespace sparkle
