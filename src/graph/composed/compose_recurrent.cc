// RNN, GRU and LSTM step by step: what the gates of all steps read of x is one product before, each step one product with the
// state behind it, the gates' arithmetic element-wise operators that the planner makes one program.
#include <algorithm>

#include "graph/composed/compose.h"

namespace sparkle {
namespace {

using P = PointwiseOp;
constexpr int64_t kMostSteps = 4096;  // of all directions: each becomes operators of the plan

// The inputs of one direction.
struct Weights {
  TensorId r, bias, peepholes, r_hidden, hidden_bias;
};

class Recurrence {
 public:
  Recurrence(Composition& c, const RecurrentOp& op) : c_(c), op_(op) {}

  Status run() {
    SPARKLE_CHECK(sizes());
    const int64_t columns = op_.directions * gates_ * hidden_;
    const TensorId rows = c_.reshape(c_.in(0), {steps_ * batch_, size_});
    std::vector<TensorId> operands{rows, c_.in(1)};
    if (c_.given(2)) operands.push_back(c_.reshape(c_.in(2), {columns}));
    MatMulOp all;
    all.gemm = true, all.transpose_b = true;
    of_x_ = c_.add(all, operands);
    std::vector<TensorId> y, h, last_c;
    for (int d = 0; d < op_.directions; ++d) direction(d, y, h, last_c);
    if (c_.wanted(0)) c_.give(0, c_.concat(y, 1));
    if (c_.wanted(1)) c_.give(1, c_.concat(h, 0));
    if (c_.wanted(2)) c_.give(2, c_.concat(last_c, 0));
    return ok();
  }

 private:
  Status sizes() {
    SPARKLE_CHECK(c_.expect_rank(0, 3));
    const Dims& x = c_.shape(0);
    steps_ = x[0], batch_ = x[1], size_ = x[2];
    gates_ = op_.cell == RecurrentOp::Cell::lstm ? 4 : op_.cell == RecurrentOp::Cell::gru ? 3 : 1;
    if (!c_.given(kRecurrentHead)) return c_.fail(Reason::bad_model, "its input 'R' is missing");
    SPARKLE_CHECK(c_.expect_rank(kRecurrentHead, 2));
    hidden_ = c_.shape(kRecurrentHead)[1];
    SPARKLE_CHECK(c_.expect_shape(1, {op_.directions * gates_ * hidden_, size_}));
    const int64_t of_state = op_.cell == RecurrentOp::Cell::gru && !op_.linear_before_reset ? 2 : gates_;
    for (int d = 0; d < op_.directions; ++d) {
      const size_t at = kRecurrentHead + static_cast<size_t>(d) * kRecurrentWeights;
      SPARKLE_CHECK(c_.expect_shape(at, {of_state * hidden_, hidden_}));
      if (c_.given(at + 2) && c_.shape(at + 2).product() != 3 * hidden_)
        return c_.wrong_shape(at + 2, std::to_string(3 * hidden_) + " elements for each direction");
    }
    if (c_.given(2) && c_.shape(2).product() != op_.directions * gates_ * hidden_)
      return c_.wrong_shape(2, std::to_string(gates_ * hidden_) + " elements for each direction");
    if (c_.given(3)) SPARKLE_CHECK(c_.expect_shape(3, {batch_}));
    for (const size_t i : {size_t{4}, size_t{5}})
      if (c_.given(i)) SPARKLE_CHECK(c_.expect_shape(i, {op_.directions, batch_, hidden_}));
    if (steps_ < 1) return c_.wrong_shape(0, "one step at least");
    if (steps_ * op_.directions > kMostSteps)
      return c_.fail(Reason::operator_not_served,
                     "its " + std::to_string(steps_) + " steps in " + std::to_string(op_.directions) +
                         " directions are more than the " + std::to_string(kMostSteps) +
                         " that a plan may hold; cut the sequence and hand the last state on as the next initial state");
    return ok();
  }

  // The initial state of direction d, or zeros.
  TensorId initial(size_t input, int d) {
    if (!c_.given(input)) return c_.zeros(c_.type(0), {batch_, hidden_});
    return c_.reshape(op_.directions == 1 ? c_.in(input) : c_.slice(c_.in(input), 0, d, d + 1), {batch_, hidden_});
  }

  // Part `gate` of a tensor whose last axis holds several.
  TensorId gate(TensorId x, int64_t first, int64_t count = 1) {
    return c_.slice(x, 1, first * hidden_, (first + count) * hidden_);
  }
  TensorId activated(TensorId x, int d, size_t which) {
    const size_t each = op_.activations.size() / static_cast<size_t>(op_.directions);
    const GateActivation& f = op_.activations[static_cast<size_t>(d) * each + which];
    if (op_.clip > 0) x = c_.pointwise(P::clip, {x}, -op_.clip, op_.clip);
    if (f.scale != 1) x = c_.pointwise(P::affine, {x}, f.scale);
    x = c_.pointwise(f.op, {x}, f.a, f.b);
    return f.outer == 1 ? x : c_.pointwise(P::affine, {x}, f.outer);
  }
  TensorId sum(TensorId a, TensorId b) { return c_.pointwise(P::add, {a, b}); }
  TensorId times(TensorId a, TensorId b) { return c_.pointwise(P::mul, {a, b}); }
  TensorId one_less(TensorId x) { return c_.pointwise(P::affine, {x}, -1, 1); }
  // a @ r^T + added.
  TensorId product(TensorId a, TensorId r, TensorId added) {
    MatMulOp op;
    op.gemm = true, op.transpose_b = true;
    return added == kAbsent ? c_.add(op, {a, r}) : c_.add(op, {a, r, added});
  }

  TensorId rnn_step(TensorId x, TensorId h, const Weights& w, int d) { return activated(product(h, w.r, x), d, 0); }

  TensorId gru_step(TensorId x, TensorId h, const Weights& w, int d) {
    TensorId z, fresh;
    if (op_.linear_before_reset) {
      const TensorId of_h = product(h, w.r, w.bias);
      const TensorId both = activated(sum(gate(x, 0, 2), gate(of_h, 0, 2)), d, 0);
      z = gate(both, 0);
      fresh = activated(sum(gate(x, 2), times(gate(both, 1), gate(of_h, 2))), d, 1);
    } else {
      const TensorId both = activated(product(h, w.r, gate(x, 0, 2)), d, 0);
      z = gate(both, 0);
      fresh = activated(product(times(gate(both, 1), h), w.r_hidden, gate(x, 2)), d, 1);
    }
    return sum(times(one_less(z), fresh), times(z, h));
  }

  TensorId lstm_step(TensorId x, TensorId h, TensorId& cell, const Weights& w, int d) {
    const TensorId all = product(h, w.r, x);
    const auto with_cell = [&](TensorId of_gate, int64_t which) {
      if (w.peepholes == kAbsent) return of_gate;
      const TensorId row = c_.slice(c_.reshape(w.peepholes, {3 * hidden_}), 0, which * hidden_, (which + 1) * hidden_);
      return sum(of_gate, times(row, cell));
    };
    const TensorId in = activated(with_cell(gate(all, 0), 0), d, 0);
    const TensorId kept = op_.input_forget ? one_less(in) : activated(with_cell(gate(all, 2), 2), d, 0);
    const TensorId fresh = activated(gate(all, 3), d, 1);
    cell = sum(times(kept, cell), times(in, fresh));
    const TensorId out = activated(with_cell(gate(all, 1), 1), d, 0);
    return times(out, activated(cell, d, 2));
  }

  void direction(int d, std::vector<TensorId>& ys, std::vector<TensorId>& hs, std::vector<TensorId>& cs) {
    const size_t at = kRecurrentHead + static_cast<size_t>(d) * kRecurrentWeights;
    const Weights w{c_.in(at), c_.in(at + 1), c_.in(at + 2), c_.in(at + 3), c_.in(at + 4)};
    const bool lstm = op_.cell == RecurrentOp::Cell::lstm;
    const bool backwards = op_.directions == 2 ? d == 1 : op_.backwards;
    const int64_t width = gates_ * hidden_;
    const TensorId mine = op_.directions == 1 ? of_x_ : c_.slice(of_x_, 1, d * width, (d + 1) * width);
    TensorId h = initial(4, d), cell = lstm ? initial(5, d) : kAbsent;
    TensorId zero = kAbsent, lengths = kAbsent;
    if (c_.given(3)) {
      zero = c_.constant(HostTensor::zeros(c_.type(0), {1, 1}));
      lengths = c_.reshape(c_.cast(c_.in(3), DType::i64), {batch_, 1});
    }
    std::vector<TensorId> y(static_cast<size_t>(steps_));
    for (int64_t n = 0; n < steps_; ++n) {
      const int64_t t = backwards ? steps_ - 1 - n : n;
      const TensorId x = steps_ == 1 ? mine : c_.slice(mine, 0, t * batch_, (t + 1) * batch_);
      TensorId next_cell = cell;
      TensorId next = op_.cell == RecurrentOp::Cell::rnn   ? rnn_step(x, h, w, d)
                      : op_.cell == RecurrentOp::Cell::gru ? gru_step(x, h, w, d)
                                                           : lstm_step(x, h, next_cell, w, d);
      TensorId& shown = y[static_cast<size_t>(t)];
      if (lengths != kAbsent) {  // beyond its length a sequence shows zeros and keeps its state
        const TensorId within = c_.pointwise(P::greater, {lengths, c_.places({1, 1}, {t})});
        shown = c_.pointwise(P::select, {within, next, zero});
        next = c_.pointwise(P::select, {within, next, h});
        if (lstm) next_cell = c_.pointwise(P::select, {within, next_cell, cell});
      } else {
        shown = next;
      }
      h = next, cell = next_cell;
    }
    if (c_.wanted(0)) ys.push_back(c_.reshape(c_.concat(y, 0), {steps_, 1, batch_, hidden_}));
    if (c_.wanted(1)) hs.push_back(c_.reshape(h, {1, batch_, hidden_}));
    if (lstm && c_.wanted(2)) cs.push_back(c_.reshape(cell, {1, batch_, hidden_}));
  }

  Composition& c_;
  const RecurrentOp& op_;
  int64_t steps_ = 0, batch_ = 0, size_ = 0, hidden_ = 0, gates_ = 0;
  TensorId of_x_ = kAbsent;  // [steps * batch, directions * gates * hidden]
};

}  // namespace

Status compose(Composition& c, const RecurrentOp& op) { return Recurrence(c, op).run(); }

}  // namespace sparkle
