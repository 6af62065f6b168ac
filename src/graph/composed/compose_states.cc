// Operators of language models that carry a state: linear attention step by step, and the causal convolution.
#include <cmath>

#include "graph/composed/compose.h"

namespace sparkle {
namespace {

using P = PointwiseOp;
constexpr int64_t kMostSteps = 4096;

}  // namespace

// The state S [batch, heads, dk, dv] of each head of keys; several heads of queries read one. Computed in f32 at least.
Status compose(Composition& c, const LinearAttentionOp& op) {
  for (const size_t i : {size_t{0}, size_t{1}, size_t{2}}) SPARKLE_CHECK(c.expect_rank(i, 3));
  const int64_t batch = c.shape(0)[0], steps = c.shape(0)[1], heads = op.key_heads, shared = op.query_heads / op.key_heads;
  if (c.shape(0)[2] % op.query_heads) return c.wrong_shape(0, std::to_string(op.query_heads) + " heads of queries");
  if (c.shape(2)[2] % heads) return c.wrong_shape(2, std::to_string(heads) + " heads of values");
  const int64_t dk = c.shape(0)[2] / op.query_heads, dv = c.shape(2)[2] / heads;
  if (dk < 1 || dv < 1) return c.fail(Reason::bad_shape, "its heads have no elements");
  SPARKLE_CHECK(c.expect_shape(1, {batch, steps, heads * dk}));
  SPARKLE_CHECK(c.expect_shape(2, {batch, steps, heads * dv}));
  if (c.given(3)) SPARKLE_CHECK(c.expect_shape(3, {batch, heads, dk, dv}));
  if (op.gated && !c.given(4)) return c.fail(Reason::bad_model, "its input 'decay' is missing");
  if (op.delta && !c.given(5)) return c.fail(Reason::bad_model, "its input 'beta' is missing");
  if (steps < 1) return c.wrong_shape(0, "one step at least");
  if (steps > kMostSteps)
    return c.fail(Reason::operator_not_served, "its " + std::to_string(steps) + " steps are more than the " +
                                                   std::to_string(kMostSteps) + " that a plan may hold");
  const DType type = c.type(0), inside = type == DType::f64 ? DType::f64 : DType::f32;
  const auto read = [&](size_t i) { return c.type(i) == inside ? c.in(i) : c.cast(c.in(i), inside); };
  const TensorId q = read(0), k = read(1), v = read(2);
  TensorId decay = kAbsent, beta = kAbsent;
  int64_t of_decay = 0, of_beta = 0;  // entries of a step
  if (op.gated) {
    of_decay = c.shape(4).back();
    SPARKLE_CHECK(c.expect_shape(4, {batch, steps, of_decay}));
    if (of_decay != heads && of_decay != heads * dk) return c.wrong_shape(4, "one entry a head or one a key's dimension");
    decay = c.pointwise(P::exp, {read(4)});
  }
  if (op.delta) {
    of_beta = c.shape(5).back();
    SPARKLE_CHECK(c.expect_shape(5, {batch, steps, of_beta}));
    if (of_beta != heads && of_beta != 1) return c.wrong_shape(5, "one entry a head or one in all");
    beta = read(5);
  }
  TensorId state = c.given(3) ? read(3) : c.zeros(inside, {batch, heads, dk, dv});
  const double scale = op.scale.value_or(1 / std::sqrt(static_cast<double>(dk)));
  const auto at = [&](TensorId x, int64_t t, const Dims& shape) {
    return c.reshape(steps == 1 ? x : c.slice(x, 1, t, t + 1), shape);
  };
  std::vector<TensorId> rows;
  for (int64_t t = 0; t < steps; ++t) {
    const TensorId row = at(k, t, {batch, heads, 1, dk}), column = at(k, t, {batch, heads, dk, 1});
    TensorId value = at(v, t, {batch, heads, 1, dv});
    if (op.gated) state = c.pointwise(P::mul, {state, at(decay, t, {batch, heads, of_decay / heads, 1})});
    if (op.delta) {
      value = c.pointwise(P::sub, {value, c.product(row, state)});
      value = c.pointwise(P::mul, {value, at(beta, t, {batch, of_beta, 1, 1})});
    }
    state = c.pointwise(P::add, {state, c.pointwise(P::mul, {column, value})});
    const TensorId query = at(q, t, {batch, heads, shared, dk});
    rows.push_back(c.reshape(c.product(query, state), {batch, 1, op.query_heads * dv}));
  }
  TensorId y = c.pointwise(P::affine, {c.concat(rows, 1)}, scale);
  if (type != inside) y = c.cast(y, type);
  c.give(0, y);
  const DType of_state = c.given(3) ? c.type(3) : type;
  c.give(1, of_state == inside ? state : c.cast(state, of_state));
  return ok();
}

Status compose(Composition& c, const CausalConvOp& op) {
  SPARKLE_CHECK(c.expect_rank(0, 3));
  SPARKLE_CHECK(c.expect_rank(1, 3));
  const int64_t batch = c.shape(0)[0], channels = c.shape(0)[1], length = c.shape(0)[2], taps = c.shape(1)[2];
  SPARKLE_CHECK(c.expect_shape(1, {channels, 1, taps}));
  if (taps < 1) return c.wrong_shape(1, "one tap at least");
  if (c.given(2)) SPARKLE_CHECK(c.expect_shape(2, {channels}));
  if (c.given(3)) SPARKLE_CHECK(c.expect_shape(3, {batch, channels, taps - 1}));
  TensorId x = c.in(0);
  if (taps > 1) {
    if (c.given(3)) x = c.concat({c.in(3), x}, 2);
    else x = c.add(PadOp{PadMode::constant, {0, 0, taps - 1}, {0, 0, 0}, 0, true}, {x});
  }
  ConvOp conv;
  conv.groups = channels;
  std::vector<TensorId> operands{x, c.in(1)};
  if (c.given(2)) operands.push_back(c.in(2));
  TensorId y = c.add(conv, operands);
  if (op.silu) y = c.pointwise(P::silu, {y});
  c.give(0, y);
  if (c.wanted(1)) c.give(1, c.slice(x, 2, length, length + taps - 1));
  return ok();
}

}  // namespace sparkle
