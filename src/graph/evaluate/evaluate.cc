// Dispatch of folding, and the operators that only make shapes or views into values.
#include "graph/evaluate/evaluate.h"

#include <algorithm>

#include "graph/infer/infer.h"
#include "graph/parts/host_values.h"
#include "graph/evaluate/values.h"

namespace sparkle {
namespace {

constexpr int64_t kLargestFolded = int64_t{64} << 20;
constexpr int64_t kLargestFilled = int64_t{512} << 20;  // weights given as ConstantOfShape
constexpr int64_t kSmall = 4096;                        // bytes or elements: sizes and the like

Values one(HostTensor t) {
  Values values;
  values.push_back(std::move(t));
  return values;
}

HostTensor viewed(const HostTensor& x, const Dims& shape) {
  HostTensor y = x;  // shares the bytes
  y.shape = shape;
  return y;
}

HostTensor filled(const ConstantOfShapeOp& op, const Dims& shape) {
  const HostTensor value = one_value(op.dtype, op.value);
  bool zero = true;
  for (int64_t i = 0; i < value.size_bytes(); ++i) zero = zero && value.bytes[i] == std::byte{0};
  if (zero) return HostTensor::zeros(op.dtype, shape);
  HostTensor y = HostTensor::uninitialized(op.dtype, shape);
  const auto bytes = static_cast<size_t>(y.size_bytes());
  auto done = std::min(bytes, static_cast<size_t>(value.size_bytes()));
  std::copy_n(value.bytes.get(), done, y.bytes.get());
  for (; done < bytes; done += std::min(done, bytes - done))  // what is there, once more behind it
    std::copy_n(y.bytes.get(), std::min(done, bytes - done), y.bytes.get() + done);
  return y;
}

// Operators that move elements or convert them: all that the narrow types have.
bool supports_narrow(const OpParams& params) {
  if (const auto* p = std::get_if<PointwiseNode>(&params)) return p->op == PointwiseOp::identity;
  return std::holds_alternative<ReshapeOp>(params) || std::holds_alternative<CastOp>(params) ||
         std::holds_alternative<ConcatOp>(params) || std::holds_alternative<SplitOp>(params) ||
         std::holds_alternative<SliceOp>(params) || std::holds_alternative<TransposeOp>(params) ||
         std::holds_alternative<ExpandOp>(params) || std::holds_alternative<TileOp>(params) ||
         std::holds_alternative<PadOp>(params) || std::holds_alternative<GatherOp>(params) ||
         std::holds_alternative<ConstantOfShapeOp>(params);
}

Result<Values> dispatch(const EvaluateContext& c) {
  const OpParams& params = c.op.params;
  bool narrow = false;
  for (const HostTensor* x : c.inputs) narrow = narrow || (x && is_narrow(x->dtype));
  if (narrow && !supports_narrow(params)) return c.unsupported();
  if (const auto* p = std::get_if<PointwiseNode>(&params)) {
    if (p->op == PointwiseOp::identity) return one(viewed(c.in(0), c.in(0).shape));
    return evaluate_pointwise(c, *p);
  }
  if (std::holds_alternative<ReshapeOp>(params)) return one(viewed(c.in(0), c.outputs[0].second));
  if (const auto* p = std::get_if<CastOp>(&params)) return evaluate_cast(c, *p);
  if (const auto* p = std::get_if<ReduceOp>(&params)) return evaluate_reduce(c, *p);
  if (const auto* p = std::get_if<ConcatOp>(&params)) return evaluate_concat(c, *p);
  if (const auto* p = std::get_if<SplitOp>(&params)) return evaluate_split(c, *p);
  if (const auto* p = std::get_if<SliceOp>(&params)) return evaluate_slice(c, *p);
  if (const auto* p = std::get_if<TransposeOp>(&params)) return evaluate_transpose(c, *p);
  if (std::holds_alternative<ExpandOp>(params)) return evaluate_expand(c);
  if (std::holds_alternative<TileOp>(params)) return evaluate_tile(c);
  if (const auto* p = std::get_if<PadOp>(&params)) return evaluate_pad(c, *p);
  if (const auto* p = std::get_if<GatherOp>(&params)) return evaluate_gather(c, *p);
  if (std::holds_alternative<RangeOp>(params)) return evaluate_range(c);
  if (const auto* p = std::get_if<ConstantOfShapeOp>(&params)) return one(filled(*p, c.outputs[0].second));
  return c.unsupported();
}

}  // namespace

Error EvaluateContext::fail(Reason reason, const std::string& what) const {
  return {reason, "Node '" + op.name + "' (" + op.type + "): " + what + "."};
}
Error EvaluateContext::unsupported() const { return fail(Reason::operator_not_served, "it is not evaluated ahead of the run"); }

FoldingCost folding_cost(const Graph& graph, const Op& op) {
  const auto* pointwise = std::get_if<PointwiseNode>(&op.params);
  if (std::holds_alternative<ReshapeOp>(op.params) || (pointwise && pointwise->op == PointwiseOp::identity)) return {};
  FoldingCost cost;
  for (TensorId id : op.outputs) {
    if (id == kAbsent) continue;
    const GraphTensor& t = graph.tensor(id);
    cost.bytes += checked_bytes(t.dtype, t.shape).value_or(kLargestFilled + 1);
    cost.work += t.shape.product();
  }
  for (TensorId id : op.inputs)
    if (id != kAbsent) cost.work += graph.tensor(id).shape.product();
  return cost;
}

// Each element of the result may read every element of the operands, or of a window; the reference looks each of them up, which
// is counted as 16 elements.
FoldingCost folding_cost_by_plan(const Graph& graph, const Op& op) {
  constexpr double kLookUp = 16;
  FoldingCost cost = folding_cost(graph, op);
  double read = 1, written = 1;
  for (TensorId id : op.inputs)
    if (id != kAbsent) read += static_cast<double>(graph.tensor(id).shape.product());
  for (TensorId id : op.outputs)
    if (id != kAbsent) written += static_cast<double>(graph.tensor(id).shape.product());
  if (const auto* pool = std::get_if<PoolOp>(&op.params)) {
    double window = 1;
    for (const int64_t size : pool->kernel) window *= static_cast<double>(size);
    read = std::max(read, window);
  }
  cost.work = static_cast<int64_t>(std::min(kLookUp * read * written, 0x1p62));
  return cost;
}

bool worth_folding(const Op& op, const FoldingCost& cost, const FoldingLimit& left) {
  const bool fill = std::holds_alternative<ConstantOfShapeOp>(op.params);
  return cost.bytes <= (fill ? kLargestFilled : kLargestFolded) && (cost.bytes <= kSmall || cost.bytes <= left.bytes) &&
         (cost.work <= kSmall || cost.work <= left.work);
}

void take(const FoldingCost& cost, FoldingLimit& left) {
  left.bytes -= cost.bytes;
  left.work -= cost.work;
}

Result<Values> evaluate_resolved(const Graph& graph, const Op& op) {
  if (std::holds_alternative<ShapeOp>(op.params) || std::holds_alternative<SizeOp>(op.params)) {
    const Dims& x = graph.tensor(op.inputs[0]).shape;
    if (std::holds_alternative<SizeOp>(op.params)) return one(from_integers(DType::i64, {}, {x.product()}));
    const auto& shape_op = std::get<ShapeOp>(op.params);
    const int64_t rank = x.size();
    const auto start = std::clamp<int64_t>(shape_op.start < 0 ? shape_op.start + rank : shape_op.start, 0, rank);
    const int64_t count = graph.tensor(op.outputs[0]).shape[0];
    return one(from_integers(DType::i64, {count}, {x.begin() + start, x.begin() + start + count}));
  }
  EvaluateContext c{op, {}, {}};
  for (TensorId id : op.inputs) c.inputs.push_back(id == kAbsent ? nullptr : &*graph.tensor(id).constant);
  for (TensorId id : op.outputs)
    c.outputs.emplace_back(id == kAbsent ? DType::f32 : graph.tensor(id).dtype,
                           id == kAbsent ? Dims{} : graph.tensor(id).shape);
  return dispatch(c);
}

Result<std::vector<HostTensor>> evaluate(const Op& op, const std::vector<const HostTensor*>& inputs) {
  FoldingLimit left;
  return evaluate(op, inputs, left);
}

Result<std::vector<HostTensor>> evaluate(const Op& op, const std::vector<const HostTensor*>& inputs, FoldingLimit& left) {
  if (const auto* host = std::get_if<HostOp>(&op.params); host && makes_tensors(*host)) {
    FoldingCost cost;  // of results that are at most eight bytes for each element and axis
    for (const HostTensor* x : inputs)
      if (x) cost.bytes += 8 * kMaxRank * x->elements(), cost.work += 64 * x->elements();
    if (host->kind == HostKind::roi_align || host->kind == HostKind::determinant || !worth_folding(op, cost, left))
      return Error{Reason::operator_not_served, "Node '" + op.name + "' (" + op.type + "): it is left to the run."};
    take(cost, left);
    return host_values(op, inputs);
  }
  Graph graph;
  Op copy = op;
  copy.inputs.clear();
  for (size_t i = 0; i < inputs.size(); ++i)
    copy.inputs.push_back(inputs[i] ? graph.add_constant("input " + std::to_string(i), *inputs[i]) : kAbsent);
  for (TensorId& id : copy.outputs) id = id == kAbsent ? kAbsent : graph.add({});
  InferContext context(graph, copy);
  SPARKLE_CHECK(infer(context));
  const FoldingCost cost = folding_cost(graph, copy);
  if (!worth_folding(copy, cost, left))
    return Error{Reason::operator_not_served,
                 "Node '" + op.name + "' (" + op.type + "): its value is too large to be kept as a constant."};
  auto values = evaluate_resolved(graph, copy);
  if (values.ok()) take(cost, left);
  return values;
}

}  // namespace sparkle
