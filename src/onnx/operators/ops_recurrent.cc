// RNN, GRU and LSTM: weights and biases are taken apart by direction here, where they are constants of the file and stay so;
// the steps are written out once shapes are known (graph/composed/compose_recurrent.cc).
#include <algorithm>
#include <cctype>

#include "onnx/node.h"

namespace sparkle {
namespace {

using P = PointwiseOp;
using Cell = RecurrentOp::Cell;

struct ActivationRow {
  std::string_view name;
  P op;
  int parameters;      // alpha, then beta
  double alpha, beta;  // unless given
};
constexpr ActivationRow kActivations[] = {
    {"relu", P::relu, 0, 0, 0},
    {"tanh", P::tanh, 0, 0, 0},
    {"sigmoid", P::sigmoid, 0, 0, 0},
    {"affine", P::affine, 2, 1, 0},
    {"leakyrelu", P::leaky_relu, 1, 0.01, 0},
    {"thresholdedrelu", P::thresholded_relu, 1, 1, 0},
    {"scaledtanh", P::tanh, 2, 1, 1},
    {"hardsigmoid", P::hard_sigmoid, 2, 0.2, 0.5},
    {"elu", P::elu, 1, 1, 0},
    {"softsign", P::softsign, 0, 0, 0},
    {"softplus", P::softplus, 0, 0, 0},
};

// Alphas and betas are listed for those activations alone that take them, in order.
std::optional<std::string> read_activations(Node& node, RecurrentOp& op) {
  std::vector<std::string> names = node.texts("activations");
  const std::vector<double> alphas = node.reals("activation_alpha"), betas = node.reals("activation_beta");
  const std::vector<std::string> usual = op.cell == Cell::lstm  ? std::vector<std::string>{"sigmoid", "tanh", "tanh"}
                                         : op.cell == Cell::gru ? std::vector<std::string>{"sigmoid", "tanh"}
                                                                : std::vector<std::string>{"tanh"};
  if (names.empty())
    for (int d = 0; d < op.directions; ++d) names.insert(names.end(), usual.begin(), usual.end());
  if (names.size() != usual.size() * static_cast<size_t>(op.directions)) {
    node.fail(Reason::bad_model, "names " + std::to_string(names.size()) + " activations where " +
                                     std::to_string(usual.size() * static_cast<size_t>(op.directions)) + " belong");
    return std::nullopt;
  }
  size_t alpha = 0, beta = 0;
  for (std::string name : names) {
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    const auto row = std::find_if(std::begin(kActivations), std::end(kActivations),
                                  [&](const ActivationRow& known) { return known.name == name; });
    if (row == std::end(kActivations)) return "its activation '" + name + "' is none of ONNX's";
    const double a = row->parameters > 0 && alpha < alphas.size() ? alphas[alpha++] : row->alpha;
    const double b = row->parameters > 1 && beta < betas.size() ? betas[beta++] : row->beta;
    if (name == "scaledtanh") op.activations.push_back({row->op, 0, 0, b, a});
    else op.activations.push_back({row->op, a, b});
  }
  return std::nullopt;
}

std::vector<TensorId> split(Node& node, TensorId x, int64_t axis, int parts, const std::string& what) {
  std::vector<TensorId> outputs;
  for (int i = 0; i < parts; ++i) {
    GraphTensor part;
    part.name = node.name() + ":" + what + std::to_string(i);
    outputs.push_back(node.import().graph.add(std::move(part)));
  }
  node.emit(SplitOp{axis, {}}, {x}, outputs, ":" + what);
  return outputs;
}

// What lies along the first axis, a direction each, without that axis; kAbsent where x is.
std::vector<TensorId> by_direction(Node& node, TensorId x, int directions, const std::string& what) {
  if (x == kAbsent) return std::vector<TensorId>(static_cast<size_t>(directions), kAbsent);
  std::vector<TensorId> parts = directions == 1 ? std::vector{x} : split(node, x, 0, directions, what);
  for (TensorId& part : parts) part = node.step(ReshapeOp{ReshapeOp::Form::squeeze, {0}, false, true}, {part});
  return parts;
}

template <Cell kCell>
OpParams read_recurrent(Node& node) {
  RecurrentOp op;
  op.cell = kCell;
  const std::string direction = node.text("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return UnknownOp{"its attribute 'direction' is '" + direction + "'"};
  op.directions = direction == "bidirectional" ? 2 : 1;
  op.backwards = direction == "reverse";
  if (auto why = read_activations(node, op)) return UnknownOp{*why};
  if (node.has("clip")) op.clip = node.real("clip", 0);
  if (kCell == Cell::lstm) op.input_forget = node.flag("input_forget", false);
  if (kCell == Cell::gru) op.linear_before_reset = node.flag("linear_before_reset", false);
  node.ignore("hidden_size");  // that of the weights
  node.ignore("output_sequence");
  const bool batch_first = node.flag("layout", false);
  const auto turned = [&](TensorId x) { return x == kAbsent || !batch_first ? x : node.step(TransposeOp{{1, 0, 2}}, {x}); };

  const TensorId w = node.step(ReshapeOp{ReshapeOp::Form::flatten, {2}, false, true}, {node.input(1)});
  std::vector<TensorId> inputs{turned(node.input(0)), w, kAbsent, node.input(4), turned(node.input(5)), kAbsent};
  TensorId of_state = kAbsent;  // bias of the recurrent product
  if (node.given(3)) {
    const std::vector<TensorId> biases = split(node, node.input(3), 1, 2, "bias");
    if (op.linear_before_reset) inputs[2] = biases[0], of_state = biases[1];
    else inputs[2] = node.step(PointwiseNode{P::add}, biases);
  }
  TensorId peepholes = kAbsent;
  if (kCell == Cell::lstm) inputs[5] = turned(node.input(6)), peepholes = node.input(7);
  const auto r = by_direction(node, node.input(2), op.directions, "recurrent");
  const auto bias = by_direction(node, of_state, op.directions, "recurrent_bias");
  const auto p = by_direction(node, peepholes, op.directions, "peepholes");
  for (size_t d = 0; d < r.size(); ++d) {
    if (kCell == Cell::gru && !op.linear_before_reset) {
      const auto gates = split(node, r[d], 0, 3, "gates" + std::to_string(d));
      inputs.insert(inputs.end(), {node.step(ConcatOp{0}, {gates[0], gates[1]}), kAbsent, kAbsent, gates[2], kAbsent});
    } else {
      inputs.insert(inputs.end(), {r[d], bias[d], p[d], kAbsent, kAbsent});
    }
  }
  node.inputs = std::move(inputs);
  if (batch_first) {
    std::vector<TensorId> first = node.outputs;
    for (size_t k = 0; k < first.size(); ++k) {
      if (first[k] == kAbsent) continue;
      GraphTensor between;
      between.name = node.name() + ":steps_first" + std::to_string(k);
      first[k] = node.import().graph.add(std::move(between));
    }
    const auto turn = [](size_t k) { return TransposeOp{k == 0 ? Dims{2, 0, 1, 3} : Dims{1, 0, 2}}; };
    size_t last = first.size();
    for (size_t k = 0; k < first.size(); ++k) last = first[k] != kAbsent ? k : last;
    if (last == first.size()) return ComposedOp{op};
    node.emit(ComposedOp{op}, node.inputs, first, ":steps");
    for (size_t k = 0; k < last; ++k)
      if (first[k] != kAbsent) node.emit(turn(k), {first[k]}, {node.outputs[k]}, ":turned" + std::to_string(k));
    node.inputs = {first[last]}, node.outputs = {node.outputs[last]};
    return turn(last);
  }
  return ComposedOp{op};
}

constexpr OperatorRow kRows[] = {
    {"RNN", read_recurrent<Cell::rnn>, 3},
    {"GRU", read_recurrent<Cell::gru>, 3},
    {"LSTM", read_recurrent<Cell::lstm>, 3},
};
}  // namespace

std::span<const OperatorRow> recurrent_operators() { return kRows; }

}  // namespace sparkle
