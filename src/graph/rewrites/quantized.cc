// DequantizeLinear -> operator -> QuantizeLinear becomes one operator on integers, where that is exact: sums of products of
// integers are, additions are computed with the same fp32 steps, Relu and Clip become bounds of the result (rounding is
// monotone), and moves of elements do not look at them. A bias must be stored in units of x's scale times w's.
#include <cmath>
#include <limits>

#include "families/pool/pool.h"
#include "families/quantize/quantize.h"
#include "families/reduce/reduce.h"
#include "graph/infer/infer.h"
#include "graph/rewrites/rewrites.h"
#include "graph/evaluate/values.h"

namespace sparkle {
namespace {

bool is_byte(DType type) { return type == DType::u8 || type == DType::i8; }
TensorId input_of(const Op& op, size_t i) { return i < op.inputs.size() ? op.inputs[i] : kAbsent; }

// The zero point of a result, which alone tells integer operators its type: where the model gives none, a zero of that type.
TensorId zero_point_of(Editor& e, TensorId given, DType type) {
  return given != kAbsent ? given : e.add_constant("zero", HostTensor::zeros(type, {}));
}

// What a DequantizeLinear reads.
struct Source {
  TensorId x = kAbsent, scale = kAbsent, zero = kAbsent;
  DType type = DType::f32;
  int64_t axis = 0;
};

std::optional<Source> dequantized(Editor& e, TensorId id) {
  const DequantizeOp* op = e.made_by<DequantizeOp>(id);
  if (!op || op->block != 0 || op->to.value_or(DType::f32) != DType::f32) return std::nullopt;
  const Op& node = e.op(e.producer(id));
  Source s{node.inputs[0], input_of(node, 1), input_of(node, 2), DType::f32, op->axis};
  const HostTensor* scale = e.constant(s.scale);
  if (!scale || scale->dtype != DType::f32) return std::nullopt;
  // The type that is certain: of the zero point, a constant, or what inference has found.
  if (s.zero != kAbsent) {
    const HostTensor* zero = e.constant(s.zero);
    if (!zero) return std::nullopt;
    s.type = zero->dtype;
  } else if (e.constant(s.x) || e.tensor(s.x).known) {
    s.type = e.tensor(s.x).dtype;
  } else {
    return std::nullopt;
  }
  return s;
}

// An 8-bit tensor with one scale.
std::optional<Source> dequantized_bytes(Editor& e, TensorId id) {
  const auto s = dequantized(e, id);
  if (!s || !is_byte(s->type) || e.constant(s->scale)->elements() != 1) return std::nullopt;
  return s;
}

// Constant weights of which each output channel (along `axis`) has one scale.
std::optional<Source> dequantized_weights(Editor& e, TensorId id, int axis_from_end) {
  const auto s = dequantized(e, id);
  if (!s || !is_byte(s->type) || !e.constant(s->x)) return std::nullopt;
  const int rank = e.constant(s->x)->shape.size();
  const int64_t axis = s->axis < 0 ? s->axis + rank : s->axis;
  if (e.constant(s->scale)->elements() != 1 && axis != rank - 1 - axis_from_end) return std::nullopt;
  return s;
}

// A bias in i32 whose scale is x's times w's, without a zero point.
bool bias_fits(Editor& e, TensorId id, const Source& x, const Source& w, TensorId& bias) {
  if (id == kAbsent) return true;
  const auto s = dequantized(e, id);
  if (!s || s->type != DType::i32) return false;
  if (s->zero != kAbsent)
    for (double v : as_doubles(*e.constant(s->zero)))
      if (v != 0) return false;
  const auto scales = as_doubles(*e.constant(s->scale)), of_w = as_doubles(*e.constant(w.scale));
  const double of_x = scalar(*e.constant(x.scale));
  for (size_t i = 0; i < std::max(scales.size(), of_w.size()); ++i) {
    const double have = scales[scales.size() == 1 ? 0 : i], want = of_x * of_w[of_w.size() == 1 ? 0 : i];
    // Stored as the fp32 product of two fp32 numbers.
    if (!(std::abs(have - want) <= 2e-7 * std::abs(want))) return false;
  }
  bias = s->x;
  return true;
}

// The QuantizeLinear at the end of a pattern.
struct Target {
  TensorId scale = kAbsent, zero = kAbsent;
  DType type = DType::u8;
  std::optional<QuantizedRange> clip;
  TensorId value = kAbsent;  // what is quantised, before Relu or Clip
};

std::optional<Target> target_of(Editor& e, int i) {
  const QuantizeOp* q = std::get_if<QuantizeOp>(&e.op(i).params);
  if (!q || q->block != 0) return std::nullopt;
  const Op& node = e.op(i);
  Target t{input_of(node, 1), input_of(node, 2), q->to, {}, node.inputs[0]};
  const HostTensor *scale = e.constant(t.scale), *zero = e.constant(t.zero);
  if (!scale || scale->elements() != 1 || scale->dtype != DType::f32 || (t.zero != kAbsent && !zero)) return std::nullopt;
  t.type = quantized_type(*q, zero ? std::optional(zero->dtype) : std::nullopt);
  if (!is_byte(t.type) || !e.single_use(t.value)) return std::nullopt;
  const PointwiseNode* node_before = e.made_by<PointwiseNode>(t.value);
  if (!node_before || (node_before->op != PointwiseOp::relu && node_before->op != PointwiseOp::clip)) return t;
  const Op& bound = e.op(e.producer(t.value));
  if (bound.inputs.size() != 1 || !e.single_use(bound.inputs[0])) return t;
  const auto step = static_cast<float>(scalar(*scale));
  const auto offset = zero ? static_cast<int32_t>(scalar(*zero)) : 0;
  const IntegerRange range = range_of(t.type);
  const bool relu = node_before->op == PointwiseOp::relu;
  t.clip = QuantizedRange{quantized(relu ? 0.0f : static_cast<float>(node_before->a), step, offset, range),
                          relu ? range.high : quantized(static_cast<float>(node_before->b), step, offset, range)};
  t.value = bound.inputs[0];
  return t;
}

// Operator i takes the place of the one that makes `value`; what lies between dies.
void become(Editor& e, int i, TensorId value, OpParams params, std::string type, std::vector<TensorId> inputs) {
  const int producing_op = e.producer(value);
  e.op(i).name = e.op(producing_op).name;
  e.op(i).type = std::move(type);
  e.op(i).params = std::move(params);
  e.set_inputs(i, std::move(inputs));
}

bool match_conv(Editor& e, int i, const Target& t) {
  const ConvOp* conv = e.made_by<ConvOp>(t.value);
  if (!conv || conv->transposed) return false;
  const Op& op = e.op(e.producer(t.value));
  const auto x = dequantized_bytes(e, op.inputs[0]);
  const HostTensor* w8 = nullptr;
  if (const auto any = dequantized(e, op.inputs[1])) w8 = e.constant(any->x);
  if (!x || !w8) return false;
  const auto w = dequantized_weights(e, op.inputs[1], w8->shape.size() - 1);
  TensorId bias = kAbsent;
  if (!w || !bias_fits(e, input_of(op, 2), *x, *w, bias)) return false;
  become(e, i, t.value, QuantizedConvOp{*conv, t.clip}, "QLinearConv",
         {x->x, w->x, bias, x->zero, w->zero, zero_point_of(e, t.zero, t.type), x->scale, w->scale, t.scale});
  return true;
}

bool match_matmul(Editor& e, int i, const Target& t) {
  const MatMulOp* matmul = e.made_by<MatMulOp>(t.value);
  if (!matmul || matmul->alpha != 1 || matmul->beta != 1) return false;
  const Op& op = e.op(e.producer(t.value));
  const auto a = dequantized_bytes(e, op.inputs[0]);
  const auto b = dequantized_weights(e, op.inputs[1], matmul->transpose_b ? 1 : 0);
  TensorId bias = kAbsent;
  if (!a || !b || !bias_fits(e, input_of(op, 2), *a, *b, bias)) return false;
  // One value per column, or none: a matrix is not what an integer stage adds.
  if (bias != kAbsent && (!e.constant(bias) || e.constant(bias)->shape.size() != 1)) return false;
  become(e, i, t.value, QuantizedMatMulOp{*matmul, t.clip}, "QLinearMatMul",
         {a->x, b->x, bias, a->zero, b->zero, zero_point_of(e, t.zero, t.type), a->scale, b->scale, t.scale});
  return true;
}

bool match_add(Editor& e, int i, const Target& t) {
  const PointwiseNode* node = e.made_by<PointwiseNode>(t.value);
  if (!node || node->op != PointwiseOp::add) return false;
  const Op& op = e.op(e.producer(t.value));
  const auto a = dequantized_bytes(e, op.inputs[0]), b = dequantized_bytes(e, op.inputs[1]);
  if (!a || !b) return false;
  become(e, i, t.value, QuantizedAddOp{t.clip}, "com.microsoft.QLinearAdd",
         {a->x, a->scale, a->zero, b->x, b->scale, b->zero, t.scale, zero_point_of(e, t.zero, t.type)});
  return true;
}

bool match_average(Editor& e, int i, const Target& t) {
  const ReduceOp* reduce = e.made_by<ReduceOp>(t.value);
  if (!reduce || reduce->kind != ReduceKind::mean || !reduce->all_spatial || t.clip) return false;
  const auto x = dequantized_bytes(e, e.op(e.producer(t.value)).inputs[0]);
  if (!x) return false;
  become(e, i, t.value, QuantizedAverageOp{}, "com.microsoft.QLinearGlobalAveragePool",
         {x->x, x->scale, x->zero, t.scale, zero_point_of(e, t.zero, t.type)});
  return true;
}

bool same_value(Editor& e, TensorId a, TensorId b) {
  if (a == b) return true;
  const HostTensor *x = e.constant(a), *y = e.constant(b);
  return x && y && x->dtype == y->dtype && x->elements() == 1 && y->elements() == 1 && scalar(*x) == scalar(*y);
}

// Whether quantisation undoes dequantisation with this scale, and keeps the order: not so below the normal numbers, where bits
// are lost, nor where 255 steps overflow.
bool invertible(Editor& e, TensorId scale) {
  const auto step = static_cast<float>(scalar(*e.constant(scale)));
  return step >= std::numeric_limits<float>::min() && std::isfinite(256 * step);
}

// What picks elements between equal scales: Reshape, Transpose, Concat, and MaxPool (of windows without elements the lowest
// value either way).
bool match_move(Editor& e, int i, const Target& t) {
  const int producing_op = e.producer(t.value);
  if (producing_op < 0 || t.clip || !invertible(e, t.scale)) return false;
  const OpParams params = e.op(producing_op).params;
  const bool concat = std::holds_alternative<ConcatOp>(params);
  const auto* pool = std::get_if<PoolOp>(&params);
  // Positions of the maxima have readers of their own.
  const bool maxima = pool && pool->kind == PoolKind::max && e.op(producing_op).outputs.size() == 1;
  if (!concat && !maxima && !std::holds_alternative<ReshapeOp>(params) && !std::holds_alternative<TransposeOp>(params))
    return false;
  std::vector<TensorId> inputs = e.op(producing_op).inputs;
  for (size_t k = 0; k < (concat ? inputs.size() : 1); ++k) {
    const auto x = dequantized_bytes(e, inputs[k]);
    if (!x || x->type != t.type || !same_value(e, x->scale, t.scale) || !same_value(e, x->zero, t.zero)) return false;
    inputs[k] = x->x;
  }
  become(e, i, t.value, params, e.op(producing_op).type, std::move(inputs));
  return true;
}

}  // namespace

bool match_quantized(Editor& e) {
  bool changed = false;
  for (int i = 0; i < e.count(); ++i) {
    if (e.erased(i)) continue;
    const auto t = target_of(e, i);
    if (!t) continue;
    for (auto* match : {match_conv, match_matmul, match_add, match_average, match_move})
      if (match(e, i, *t)) {
        changed = true;
        break;
      }
  }
  return changed;
}

}  // namespace sparkle
