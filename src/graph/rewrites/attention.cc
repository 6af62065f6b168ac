// softmax(scale * q k^T + mask) v as exporters write it, MatMul, Mul or Div by a number, Add, Softmax, MatMul, becomes one
// Attention: the scores are never kept. k arrives transposed; its MatMul becomes the transposition back, which is a view, or
// nothing once it meets the one that made it. Networks on maps write v softmax(...)^T with channels before pixels: the same
// with v and the result transposed. Needs shapes, so it is found after bind() only.
#include <utility>

#include "graph/rewrites/rewrites.h"
#include "graph/evaluate/values.h"

namespace sparkle {
namespace {

// The number that `id` is a multiple of its input by, if it is one.
bool scaled(Editor& e, TensorId id, double& factor, TensorId& input) {
  const auto* node = e.made_by<PointwiseNode>(id);
  if (!node || !e.single_use(id)) return false;
  const Op& op = e.op(e.producer(id));
  if (node->op == PointwiseOp::affine && node->b == 0) {
    factor = node->a, input = op.inputs[0];
    return true;
  }
  if (node->op != PointwiseOp::mul && node->op != PointwiseOp::div) return false;
  for (size_t side = 0; side < 2; ++side) {
    const HostTensor* number = e.constant_input(op, 1 - side);
    if (!number || number->elements() != 1 || (node->op == PointwiseOp::div && side == 1)) continue;
    const double value = as_doubles(*number)[0];
    factor = node->op == PointwiseOp::mul ? value : 1 / value, input = op.inputs[side];
    return e.tensor(input).shape == e.tensor(id).shape;
  }
  return false;
}

// A product of two operands of the same batch axes, or nullptr.
const Op* product(Editor& e, TensorId id) {
  const auto* matmul = e.made_by<MatMulOp>(id);
  if (!matmul || matmul->gemm) return nullptr;
  const Op& op = e.op(e.producer(id));
  if (op.inputs.size() > 2 && op.inputs[2] != kAbsent) return nullptr;
  const GraphTensor &a = e.tensor(op.inputs[0]), &b = e.tensor(op.inputs[1]);
  if (!a.known || !b.known || a.shape.size() != b.shape.size() || a.dtype != b.dtype) return nullptr;
  const int rank = a.shape.size();
  if (rank < 3 || rank > 4) return nullptr;
  for (int i = 0; i < rank - 2; ++i)
    if (a.shape[i] != b.shape[i]) return nullptr;
  return &op;
}

struct Scores {
  TensorId product = kAbsent, mask = kAbsent;
  double scale = 1;
  std::vector<int> between;  // operators that disappear
};

// What goes into a softmax, back to the product of queries and keys.
bool find_scores(Editor& e, TensorId id, Scores& s) {
  TensorId input = kAbsent;
  const auto* add = e.made_by<PointwiseNode>(id);
  if (add && add->op == PointwiseOp::add && e.single_use(id) && e.tensor(id).shape.size() == 4) {
    const Op& op = e.op(e.producer(id));
    for (size_t side = 0; side < 2 && s.mask == kAbsent; ++side) {
      const TensorId rest = op.inputs[side], mask = op.inputs[1 - side];
      const GraphTensor& t = e.tensor(mask);
      if (!e.made_by<MatMulOp>(rest) && !scaled(e, rest, s.scale, input)) continue;
      if (e.tensor(rest).shape != e.tensor(id).shape || !t.known || t.shape.empty()) continue;
      if (t.dtype != e.tensor(id).dtype || t.shape.back() != e.tensor(id).shape.back()) continue;
      s.mask = mask;
      s.between.push_back(e.producer(id));
      id = rest;
    }
  }
  s.scale = 1;
  if (scaled(e, id, s.scale, input)) s.between.push_back(e.producer(id)), id = input;
  s.product = id;
  return s.scale >= 0 && e.single_use(id) && product(e, id) != nullptr;
}

TransposeOp swapped_last_axes(int rank) {
  TransposeOp op;
  for (int axis = 0; axis < rank; ++axis) op.permutation.push_back(axis);
  std::swap(op.permutation[rank - 2], op.permutation[rank - 1]);
  return op;
}

// Makes operator `at` the transposition of `x` into `result`, a tensor whose meaning changes with it.
void become_transpose(Editor& e, int at, TensorId x, TensorId result, const char* suffix) {
  const int rank = e.tensor(x).shape.size();
  e.op(at).params = swapped_last_axes(rank);
  e.op(at).type = "Transpose";
  e.set_inputs(at, {x});
  if (!suffix) return;
  GraphTensor& t = e.tensor(result);
  t.shape = e.tensor(x).shape;
  std::swap(t.shape[rank - 2], t.shape[rank - 1]);
  t.name += suffix;
}

}  // namespace

bool match_attention(Editor& e) {
  bool changed = false;
  for (int i = 0; i < e.count(); ++i) {
    if (e.erased(i) || e.op(i).outputs.empty()) continue;
    const Op* values = product(e, e.op(i).outputs[0]);
    if (!values) continue;
    TensorId weights = values->inputs[0], v = values->inputs[1];
    const TensorId turned = v;  // the weights transposed, in the other form
    const auto* turn = e.made_by<TransposeOp>(turned);
    const bool channels_first = turn && e.single_use(turned) &&
                                turn->permutation == swapped_last_axes(turn->permutation.size()).permutation &&
                                e.made_by<SoftmaxOp>(e.op(e.producer(turned)).inputs[0]);
    if (channels_first) v = weights, weights = e.op(e.producer(turned)).inputs[0];
    const auto* softmax = e.made_by<SoftmaxOp>(weights);
    if (!softmax || softmax->logarithm || !e.single_use(weights)) continue;
    const int rank = e.tensor(weights).shape.size();
    if (softmax->axis != -1 && softmax->axis != rank - 1) continue;
    const int softmax_at = e.producer(weights);
    if (channels_first && e.producer(v) > softmax_at) continue;  // its transposition takes the softmax's place
    Scores s;
    if (!find_scores(e, e.op(softmax_at).inputs[0], s)) continue;
    const int product_at = e.producer(s.product);
    const TensorId q = e.op(product_at).inputs[0], transposed = e.op(product_at).inputs[1];
    if (e.tensor(q).shape.back() < 1 || e.tensor(q).dtype != e.tensor(v).dtype) continue;

    // The product's place becomes k: [..., n, depth].
    become_transpose(e, product_at, transposed, s.product, "/keys");
    for (int at : s.between) e.erase(at);
    int place = i;
    if (channels_first) {
      place = e.producer(turned);
      become_transpose(e, softmax_at, v, weights, "/values");
      v = weights;
      GraphTensor& y = e.tensor(turned);
      y.shape = e.tensor(q).shape;
      y.shape[rank - 1] = e.tensor(v).shape[rank - 1];
      y.name += "/attention";
      become_transpose(e, i, turned, kAbsent, nullptr);
      std::swap(e.op(place).name, e.op(i).name);  // the product gives the step its meaning
    } else {
      e.erase(softmax_at);
    }
    AttentionOp attention;
    attention.scale = s.scale;
    attention.unseen_is_nan = true;
    if (rank == 3) attention.query_heads = attention.key_heads = 1;
    e.op(place).params = attention;
    e.op(place).type = "Attention";
    std::vector<TensorId> inputs{q, s.product, v};
    if (s.mask != kAbsent) inputs.push_back(s.mask);
    e.set_inputs(place, inputs);
    changed = true;
  }
  return changed;
}

}  // namespace sparkle
