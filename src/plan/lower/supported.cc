#include "plan/lower/supported.h"

#include <algorithm>

#include "families/attention/attention.h"
#include "families/copy/copy.h"
#include "families/deform/deform.h"
#include "families/gather/gather.h"
#include "families/gemm/gemm.h"
#include "families/normalize/normalize.h"
#include "families/pointwise/arithmetic.h"
#include "families/pool/pool.h"
#include "families/reduce/reduce.h"
#include "families/rotary/rotary.h"
#include "families/softmax/softmax.h"
#include "families/triangle/triangle.h"
#include "graph/infer/known_types.h"
#include "plan/lower/limits.h"
#include "plan/lower/lower.h"

namespace sparkle {

StageParams stage_params(const OpParams& params) {
  if (const auto* p = std::get_if<PointwiseNode>(&params)) return PointwiseParams{1, {{p->op}}};
  if (std::holds_alternative<CastOp>(params)) return PointwiseParams{1, {{}}};
  if (std::holds_alternative<ConvOp>(params)) return GemmParams{};
  if (std::holds_alternative<MatMulOp>(params)) return GemmParams{Loader::dense, 1, {}, {}};
  if (const auto* p = std::get_if<PoolOp>(&params)) return PoolParams{p->kind, {}, false, 2};
  if (const auto* p = std::get_if<ReduceOp>(&params)) return ReduceParams{p->kind, {}};
  if (const auto* p = std::get_if<ResizeOp>(&params)) return p->params;
  if (std::holds_alternative<LocalResponseOp>(params)) return PoolParams{PoolKind::average, {}, false, 2};
  if (std::holds_alternative<SoftmaxOp>(params)) return SoftmaxParams{};
  if (std::holds_alternative<BatchNormalizationOp>(params) || std::holds_alternative<InstanceNormalizationOp>(params) ||
      std::holds_alternative<LayerNormalizationOp>(params) || std::holds_alternative<GroupNormalizationOp>(params) ||
      std::holds_alternative<MeanVarianceNormalizationOp>(params) || std::holds_alternative<LpNormalizationOp>(params))
    return NormalizeParams{};
  if (std::holds_alternative<AttentionOp>(params)) return AttentionParams{};
  if (std::holds_alternative<RotaryEmbeddingOp>(params)) return RotaryParams{};
  if (const auto* p = std::get_if<GridSampleOp>(&params)) return p->params;
  if (std::holds_alternative<DeformConvOp>(params)) return DeformParams{};
  if (std::holds_alternative<ReshapeOp>(params) || std::holds_alternative<TransposeOp>(params) ||
      std::holds_alternative<SliceOp>(params) || std::holds_alternative<SplitOp>(params) ||
      std::holds_alternative<ConcatOp>(params) || std::holds_alternative<ExpandOp>(params) ||
      std::holds_alternative<TileOp>(params) || std::holds_alternative<DepthToSpaceOp>(params) ||
      std::holds_alternative<SpaceToDepthOp>(params) || std::holds_alternative<GatherOp>(params) ||
      std::holds_alternative<PadOp>(params))
    return CopyParams{};
  if (std::holds_alternative<GatherElementsOp>(params) || std::holds_alternative<GatherNDOp>(params)) return GatherParams{};
  if (std::holds_alternative<TriluOp>(params)) return TriangleParams{};
  return {};
}

namespace {

// Operands that are not of the operator's own type: indices of Gather, positions of MaxPool, conditions and truth values of
// element-wise operators.
bool apart(const Op& op, bool input, size_t position, DType type) {
  if (std::holds_alternative<GatherOp>(op.params) && input && position == 1) return type == DType::i32 || type == DType::i64;
  if (std::holds_alternative<PoolOp>(op.params) && !input && position == 1) return type == DType::i64;
  if (std::holds_alternative<AttentionOp>(op.params) && input)
    return (position == 3 && type == DType::boolean) || (position == 6 && type == DType::i64);
  if (std::holds_alternative<RotaryEmbeddingOp>(op.params) && input) return position == 3 && type == DType::i64;
  return std::holds_alternative<PointwiseNode>(op.params) && type == DType::boolean &&
         (!input || (std::get<PointwiseNode>(op.params).op == PointwiseOp::select && position == 0));
}

bool is_quantized(const Op& op) {
  return std::holds_alternative<QuantizeOp>(op.params) || std::holds_alternative<DequantizeOp>(op.params) ||
         std::holds_alternative<DynamicQuantizeOp>(op.params) || std::holds_alternative<QuantizedConvOp>(op.params) ||
         std::holds_alternative<QuantizedMatMulOp>(op.params) || std::holds_alternative<QuantizedAddOp>(op.params) ||
         std::holds_alternative<QuantizedAverageOp>(op.params);
}

// What is wrong with the types of an operator's tensors, if anything is.
std::optional<std::string> wrong_type(const Graph& graph, const Op& op) {
  if (is_quantized(op)) return std::nullopt;  // inference has checked its types
  const bool index = is_index_operator(op);   // of these it has checked all but those that are storage alone
  const StageParams params = stage_params(op.params);
  const TypeSet types = params.type() ? type_row(params).types : index ? kComputed : TypeSet{DType::f32};
  const auto check = [&](TensorId id, bool input, size_t position) -> std::optional<std::string> {
    if (id == kAbsent) return std::nullopt;
    const GraphTensor& t = graph.tensor(id);
    const bool gathers = std::holds_alternative<GatherOp>(op.params) && input && position == 1;
    if (apart(op, input, position, t.dtype) || (types.has(t.dtype) && !gathers)) return std::nullopt;
    return "tensor '" + t.name + "' has type " + std::string(name_of(t.dtype)) + "; this operator supports " +
           (gathers ? "i32, i64" : to_text(types)) + " there";
  };
  for (size_t i = 0; i < op.inputs.size(); ++i)
    if (auto wrong = check(op.inputs[i], true, i)) return wrong;
  for (size_t i = 0; i < op.outputs.size(); ++i)
    if (auto wrong = check(op.outputs[i], false, i)) return wrong;
  return std::nullopt;
}

// Operators that others stand for, or constants, once shapes are known.
bool goes_when_bound(const Op& op) {
  return std::holds_alternative<EinsumOp>(op.params) || std::holds_alternative<ComposedOp>(op.params) ||
         std::holds_alternative<ShapeOp>(op.params) || std::holds_alternative<SizeOp>(op.params) ||
         std::holds_alternative<ConstantOfShapeOp>(op.params) || std::holds_alternative<RangeOp>(op.params);
}

// The operators that some output of the model needs.
std::vector<bool> needed_ops(const Graph& graph) {
  std::vector<bool> used(graph.tensors.size(), false), needed(graph.ops.size(), false);
  for (TensorId id : graph.outputs) used[static_cast<size_t>(id)] = true;
  for (size_t i = graph.ops.size(); i-- > 0;) {
    const Op& op = graph.ops[i];
    for (TensorId id : op.outputs) needed[i] = needed[i] || (id != kAbsent && used[static_cast<size_t>(id)]);
    for (TensorId id : op.inputs)
      if (needed[i] && id != kAbsent) used[static_cast<size_t>(id)] = true;
  }
  return needed;
}

}  // namespace

Status check_types(const Graph& graph, const Op& op) {
  const auto wrong = wrong_type(graph, op);
  if (!wrong) return ok();
  if (std::holds_alternative<ConstantOfShapeOp>(op.params))
    return Error{Reason::size_overflow,
                 "Node '" + op.name + "' (" + op.type + "): its result of " + graph.tensor(op.outputs[0]).shape.to_string() +
                     " elements is larger than what is filled before a run (512 MiB each, 1 GiB in all)."};
  return Error{Reason::type_not_served, "Node '" + op.name + "' (" + op.type + "): " + *wrong + "."};
}

std::vector<Refusal> unsupported(const Graph& graph) {
  std::vector<std::optional<DType>> types;
  for (TensorId id : graph.inputs) types.push_back(graph.tensor(id).dtype);
  return unsupported(graph, types);
}

std::vector<Refusal> unsupported(const Graph& graph, const std::vector<std::optional<DType>>& of_inputs) {
  std::vector<Refusal> refusals;
  const std::vector<bool> needed = needed_ops(graph);
  const std::vector<std::optional<DType>> types = known_types(graph, of_inputs);
  const std::vector<bool> data = from_data(graph);
  Graph typed;  // the types alone, for check_types
  for (size_t i = 0; i < graph.tensors.size(); ++i) {
    GraphTensor t;
    t.name = graph.tensors[i].name;
    t.dtype = types[i].value_or(DType::f32);
    typed.tensors.push_back(std::move(t));
  }
  const auto unknown = [&](TensorId id) {
    return id != kAbsent && (!types[static_cast<size_t>(id)] || !data[static_cast<size_t>(id)]);
  };
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    if (!needed[i]) continue;
    const Op& op = graph.ops[i];
    if (const auto* no = std::get_if<UnknownOp>(&op.params)) {
      refusals.push_back({op.name, op.type, Reason::operator_not_served, no->why.empty() ? "it is not supported" : no->why});
      continue;
    }
    if (const auto beyond = beyond_limits(graph, op)) {
      refusals.push_back({op.name, op.type, Reason::operator_not_served, *beyond});
      continue;
    }
    if (goes_when_bound(op)) continue;
    if (const auto* host = std::get_if<HostOp>(&op.params)) {
      for (size_t b = 0; b < host->bodies.size(); ++b)
        for (Refusal& refusal : unsupported(*host->bodies[b], body_input_types(op, b, types)))
          refusals.push_back(std::move(refusal));
      continue;
    }
    // What is resolved or folded when the graph is bound may have any type.
    Op alike{op.name, op.type, op.params, op.inputs, op.outputs};
    for (TensorId& id : alike.inputs)
      if (unknown(id)) id = kAbsent;
    for (TensorId& id : alike.outputs)
      if (unknown(id)) id = kAbsent;
    if (const auto wrong = wrong_type(typed, alike)) refusals.push_back({op.name, op.type, Reason::type_not_served, *wrong});
  }
  for (size_t i = 0; i < graph.declared.size() && i < graph.outputs.size(); ++i) {
    const auto& type = types[static_cast<size_t>(graph.outputs[i])];
    const auto& said = graph.declared[i].dtype;
    if (type && said && *type != *said) refusals.push_back(wrongly_declared(graph.tensor(graph.outputs[i]).name, *said, *type));
  }
  return refusals;
}

Status check_supported(const Graph& graph, const std::string& model) {
  const std::vector<Refusal> refusals = unsupported(graph);
  return refusals.empty() ? ok() : Status(refused(model, refusals));
}

}  // namespace sparkle
