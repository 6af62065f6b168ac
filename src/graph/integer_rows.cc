#include "graph/integer_rows.h"

namespace sparkle {
namespace {

// Where the zero points stand among the inputs of a QuantizedMatMulOp (ops.h).
constexpr size_t kZeroA = 3, kZeroB = 4, kFirstScale = 6;

TensorId input(const Op& op, size_t i) { return i < op.inputs.size() ? op.inputs[i] : kAbsent; }

class Expansion {
 public:
  Expansion(Graph& graph, const Op& op) : graph_(graph), op_(op) {}

  std::vector<Op> run() {
    const TensorId a = less(0, kZeroA, true), b = less(1, kZeroB, false);
    step(MatMulOp{}, {a, b}, op_.outputs);
    return std::move(steps_);
  }

 private:
  TensorId step(OpParams params, std::vector<TensorId> from, std::vector<TensorId> to = {}) {
    const std::string name = op_.name + ":" + std::to_string(steps_.size() + 1);
    if (to.empty()) {
      GraphTensor between;
      between.name = name;
      to = {graph_.add(std::move(between))};
    }
    steps_.push_back({name, op_.type, std::move(params), std::move(from), to});
    return to[0];
  }

  // Input i in i32, its zero points taken off. `rows`: those of one axis belong to the last axis but one.
  TensorId less(size_t i, size_t zero, bool rows) {
    const TensorId wide = step(CastOp{DType::i32}, {op_.inputs[i]});
    TensorId points = input(op_, zero);
    if (points == kAbsent) return wide;
    const bool column = rows && graph_.tensor(points).shape.size() == 1 && graph_.tensor(points).shape[0] > 1;
    points = step(CastOp{DType::i32}, {points});
    if (column) points = step(ReshapeOp{ReshapeOp::Form::unsqueeze, {1}, false, true}, {points});
    return step(PointwiseNode{PointwiseOp::sub, 0, 0, Repeats::second}, {wide, points});
  }

  Graph& graph_;
  const Op& op_;
  std::vector<Op> steps_;
};

}  // namespace

bool has_zero_points_by_row(const Graph& graph, const Op& op) {
  if (!std::holds_alternative<QuantizedMatMulOp>(op.params)) return false;
  for (size_t i = kFirstScale; i < op.inputs.size(); ++i)
    if (op.inputs[i] != kAbsent) return false;  // QLinearMatMul
  const auto by_row = [&](size_t i, bool rows) {
    const TensorId id = input(op, i);
    if (id == kAbsent || graph.tensor(id).shape.product() == 1) return false;
    return rows || graph.tensor(id).shape.size() > 1;
  };
  return by_row(kZeroA, true) || by_row(kZeroB, false);
}

std::vector<Op> expand_zero_points(Graph& graph, const Op& op) { return Expansion(graph, op).run(); }

}  // namespace sparkle
