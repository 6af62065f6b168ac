#include "graph/infer/known_types.h"

#include "graph/host_inputs.h"
#include "graph/infer/infer.h"

namespace sparkle {
namespace {

using Type = std::optional<DType>;

// The types of an operator's results; those of its inputs by types[i].
struct Rule {
  const Op& op;
  const std::vector<Type>& types;

  bool given(size_t i) const { return i < op.inputs.size() && op.inputs[i] != kAbsent; }
  Type in(size_t i) const { return given(i) ? types[static_cast<size_t>(op.inputs[i])] : std::nullopt; }

  // By alternative of OpParams: output k of most has the first input's type.
  template <class Params>
  Type of(const Params&, size_t) const {
    return in(0);
  }
  Type of(const UnknownOp&, size_t) const { return std::nullopt; }
  Type of(const PointwiseNode& p, size_t) const {
    return gives_boolean(p.op) ? DType::boolean : in(p.op == PointwiseOp::select ? 1 : 0);
  }
  Type of(const CastOp& p, size_t) const { return given(1) ? in(1) : p.to; }
  Type of(const PoolOp&, size_t k) const { return k == 0 ? in(0) : DType::i64; }
  Type of(const LayerNormalizationOp&, size_t k) const { return k == 0 ? in(0) : DType::f32; }
  Type of(const AttentionOp&, size_t k) const { return in(k == 3 ? 0 : k); }
  Type of(const ShapeOp&, size_t) const { return DType::i64; }
  Type of(const SizeOp&, size_t) const { return DType::i64; }
  Type of(const ConstantOfShapeOp& p, size_t) const { return p.dtype; }
  Type of(const ArgOp&, size_t) const { return DType::i64; }
  Type of(const TopKOp&, size_t k) const { return k == 0 ? in(0) : DType::i64; }
  Type of(const OneHotOp&, size_t) const { return in(op.inputs.size() > 2 ? 2 : 1); }
  Type of(const NonMaxSuppressionOp&, size_t) const { return DType::i64; }
  Type of(const QuantizeOp& p, size_t) const { return given(2) ? in(2) : quantized_type(p, std::nullopt); }
  Type of(const DequantizeOp& p, size_t) const { return p.to ? p.to : in(1); }
  Type of(const DynamicQuantizeOp&, size_t k) const { return k == 1 ? DType::f32 : DType::u8; }
  Type of(const QuantizedConvOp&, size_t) const { return of_integers(); }
  Type of(const QuantizedMatMulOp&, size_t) const { return of_integers(); }
  Type of(const QuantizedAddOp&, size_t) const { return given(7) ? in(7) : in(0); }
  Type of(const QuantizedAverageOp&, size_t) const { return given(4) ? in(4) : in(0); }

  Type of(const ComposedOp& p, size_t) const {
    const Type own = result_type(p);
    return own ? own : in(0);
  }
  Type of(const HostOp& p, size_t k) const {
    switch (p.kind) {
      case HostKind::non_zero:
      case HostKind::sequence_length: return DType::i64;
      case HostKind::unique: return k == 0 ? in(0) : DType::i64;
      case HostKind::sequence_empty:
      case HostKind::bit_cast: return p.dtype;
      default: return in(0);
    }
  }
  Type of_integers() const { return !given(8) ? DType::i32 : given(5) ? in(5) : DType::u8; }
};

}  // namespace

std::vector<Type> body_input_types(const Op& op, size_t number, const std::vector<Type>& types) {
  const auto& p = std::get<HostOp>(op.params);
  const auto type = [&](size_t i) -> Type {
    return i < op.inputs.size() && op.inputs[i] != kAbsent ? types[static_cast<size_t>(op.inputs[i])] : std::nullopt;
  };
  const HostInputs at = host_inputs(op, number);
  std::vector<Type> inside;
  for (size_t i = 0; i < at.formals; ++i) {
    if (p.kind == HostKind::loop) inside.push_back(i == 0 ? DType::i64 : i == 1 ? DType::boolean : type(i));
    else inside.push_back(type(i));
  }
  for (size_t i = 0; i < at.read; ++i) inside.push_back(type(at.first_read + i));
  return inside;
}

std::vector<Type> known_types(const Graph& graph) {
  std::vector<Type> of_inputs;
  for (TensorId id : graph.inputs) of_inputs.push_back(graph.tensor(id).dtype);
  return known_types(graph, of_inputs);
}

std::vector<Type> known_types(const Graph& graph, const std::vector<Type>& of_inputs) {
  std::vector<Type> types(graph.tensors.size());
  for (size_t i = 0; i < types.size(); ++i)
    if (graph.tensors[i].constant) types[i] = graph.tensors[i].constant->dtype;
  for (size_t i = 0; i < graph.inputs.size() && i < of_inputs.size(); ++i)
    types[static_cast<size_t>(graph.inputs[i])] = of_inputs[i];
  for (const Op& op : graph.ops) {
    const auto* host = std::get_if<HostOp>(&op.params);
    if (host && !host->bodies.empty()) {  // once for all outputs: bodies lie within bodies
      const Graph& body = *host->bodies[0];
      const std::vector<Type> inside = known_types(body, body_input_types(op, 0, types));
      const size_t first = host->kind == HostKind::loop ? 1 : 0;  // behind the condition
      for (size_t k = 0; k < op.outputs.size() && first + k < body.outputs.size(); ++k)
        if (op.outputs[k] != kAbsent)
          types[static_cast<size_t>(op.outputs[k])] = inside[static_cast<size_t>(body.outputs[first + k])];
      continue;
    }
    const Rule rule{op, types};
    for (size_t k = 0; k < op.outputs.size(); ++k) {
      if (op.outputs[k] == kAbsent) continue;
      types[static_cast<size_t>(op.outputs[k])] = std::visit([&](const auto& params) { return rule.of(params, k); }, op.params);
    }
  }
  return types;
}

std::vector<bool> from_data(const Graph& graph) {
  std::vector<bool> data(graph.tensors.size(), false);
  const std::vector<bool> by_value = inputs_needed_by_value(graph);
  for (size_t i = 0; i < graph.inputs.size(); ++i) data[static_cast<size_t>(graph.inputs[i])] = !by_value[i];
  for (const Op& op : graph.ops) {
    const bool by_shape = std::holds_alternative<ShapeOp>(op.params) || std::holds_alternative<SizeOp>(op.params);
    bool any = std::holds_alternative<HostOp>(op.params);
    for (TensorId id : op.inputs) any = any || (id != kAbsent && !by_shape && data[static_cast<size_t>(id)]);
    for (TensorId id : op.outputs)
      if (id != kAbsent) data[static_cast<size_t>(id)] = any;
  }
  return data;
}

}  // namespace sparkle
