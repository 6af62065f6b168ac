// Operators on quantised tensors: integer convolutions and products, QuantizeLinear and its relatives.
#include "families/integers/integers.h"
#include "families/values/narrow.h"
#include "families/quantize/quantize.h"
#include "families/registry.h"
#include "graph/evaluate/values.h"
#include "plan/lower/lower.h"
#include "plan/lower/view.h"

namespace sparkle {
namespace {

// The operand as a list: one value, or one per channel.
int as_list(Lowering& l, int v) {
  const TensorDesc desc = l.draft.desc(v);
  if (desc.shape.size() == 1) return v;
  const int plain = l.draft.in_order(v, order_row_major(desc.shape.size()), "layout");
  return l.draft.view(plain, *reshape_view(l.draft.desc(plain), {desc.elements()}));
}

bool given(const Op& op, size_t i) { return i < op.inputs.size() && op.inputs[i] != kAbsent; }

// The zero point at input i, or a zero of this type.
int zero_point(Lowering& l, const Op& op, size_t i, DType type) {
  if (given(op, i)) return as_list(l, l.value(op.inputs[i]));
  return l.draft.constant(op.name + "/zero", HostTensor::zeros(type, {1}));
}

// The operand broadcast to a shape: along `axis`, or everywhere where it holds one value.
int along(Lowering& l, int v, int64_t axis, const Dims& shape) {
  const int list = as_list(l, v);
  Dims ones = Dims::filled(shape.size(), 1);
  if (l.draft.desc(list).shape[0] != 1) ones[static_cast<int>(axis)] = shape[static_cast<int>(axis)];
  return l.draft.view(list, broadcast_view(*reshape_view(l.draft.desc(list), ones), shape));
}

// a's scale * b's scale / y's scale: a constant where they are constants, else a small step.
int factor(Lowering& l, const Op& op) {
  Draft& d = l.draft;
  std::vector<int> scales;
  int64_t count = 1;
  bool constant = true;
  for (size_t i = 6; i < 9; ++i) {
    scales.push_back(as_list(l, l.value(op.inputs[i])));
    count = std::max(count, d.desc(scales.back()).shape[0]);
    constant = constant && d.constant_of(scales.back());
  }
  for (int& v : scales) v = along(l, v, 0, {count});
  QuantizeParams params;
  params.kind = QuantizeKind::factor;
  const std::string name = op.name + "/factor";
  if (!constant) {
    const int out = d.make(name, DType::f32, {count}, {0});
    d.step(name, {op.name}, StageParams(params), scales, {out});
    return out;
  }
  const HostTensor value = HostTensor::zeros(DType::f32, {count});
  std::vector<TensorView> inputs;
  for (int v : scales) inputs.push_back({d.constant_of(v)->bytes.get(), d.desc(v)});
  const TensorView output = value.view();
  info(Family::quantize).reference(StageParams(params), inputs, {&output, 1});
  return d.constant(name, value);
}

// Scale, bias and zero points behind the two operands of a sum, and the bounds of its result.
void append_operands(Lowering& l, const Op& op, const std::optional<QuantizedRange>& clip, Problem& problem,
                     std::vector<int>& inputs) {
  Epilogue& e = problem.epilogue;
  e.scale = given(op, 8);
  e.bias = given(op, 2);
  if (e.scale) inputs.push_back(factor(l, op));
  if (e.bias) inputs.push_back(as_list(l, l.value(op.inputs[2])));
  for (size_t i = 0; i < 2; ++i) inputs.push_back(zero_point(l, op, 3 + i, l.graph.tensor(op.inputs[i]).dtype));
  if (e.scale) inputs.push_back(zero_point(l, op, 5, l.graph.tensor(op.outputs[0]).dtype));
  if (e.scale && clip) {
    e.activation = Activation::clip;
    e.a = static_cast<double>(clip->low), e.b = static_cast<double>(clip->high);
  }
  problem.dtype = name_of(l.graph.tensor(op.inputs[0]).dtype);
}

// Constant filters of a depthwise convolution less their zero point, which nine bits hold: the kernel then packs them once.
void take_zero_off(Lowering& l, const Op& op, std::vector<int>& inputs, const Epilogue& e) {
  Draft& d = l.draft;
  const IntegerOperands at = integer_operands(e);
  int& w = inputs[1];
  int& zero = inputs[static_cast<size_t>(at.b_zero)];
  const HostTensor *filters = d.constant_of(w), *zeros = d.constant_of(zero);
  const Dims shape = d.desc(w).shape;
  if (!filters || !zeros || !is_row_major(shape, d.desc(w).layout)) return;
  const HostTensor less = HostTensor::zeros(DType::i16, shape);
  const int64_t per_filter = shape.product() / std::max<int64_t>(1, shape[0]);
  for (int64_t i = 0; i < shape.product(); ++i) {
    const double offset = element(*zeros, zeros->elements() == 1 ? 0 : i / per_filter);
    less.data<int16_t>()[i] = static_cast<int16_t>(element(*filters, i) - offset);
  }
  w = d.constant(op.name + "/filters", less);
  zero = d.constant(op.name + "/no_zero", HostTensor::zeros(DType::i16, {1}));
}

Status lower_conv(Lowering& l, const Group& group, const Op& op, const QuantizedConvOp& conv) {
  Draft& d = l.draft;
  SPARKLE_TRY(problem, conv_problem(l, op, conv.conv));
  const GraphTensor& y = l.result(group);
  std::vector<int> inputs{d.channels_innermost(l.value(op.inputs[0])), l.value(op.inputs[1])};
  append_operands(l, op, conv.clip, problem, inputs);
  if (problem.groups == problem.c && problem.groups == problem.k && problem.groups > 1)
    take_zero_off(l, op, inputs, problem.epilogue);
  const int out = d.make(y.name, y.dtype, y.shape, order_channels_last(y.shape.size()));
  d.step(op.name, l.nodes(group), problem, inputs, {out});
  l.set(group.output, out);
  return ok();
}

Status lower_matmul(Lowering& l, const Group& group, const Op& op, const QuantizedMatMulOp& matmul) {
  Draft& d = l.draft;
  auto [problem, a, b, shape] = matrix_product(l.draft, l.value(op.inputs[0]), l.value(op.inputs[1]), matmul.matmul);
  const GraphTensor& y = l.result(group);
  std::vector<int> inputs{a, b};
  append_operands(l, op, matmul.clip, problem, inputs);
  const int out = d.make(y.name, y.dtype, shape, order_row_major(shape.size()));
  d.step(op.name, l.nodes(group), problem, inputs, {out});
  l.set(group.output, d.view(out, *reshape_view(d.desc(out), y.shape)));
  return ok();
}

// What a step on constants gives, here and now; nothing where some operand is none.
std::optional<HostTensor> constant_of(Draft& d, const QuantizeParams& params, const std::vector<int>& inputs,
                                      const GraphTensor& result) {
  std::vector<TensorView> views;
  for (const int v : inputs) {
    const HostTensor* constant = d.constant_of(v);
    if (!constant) return std::nullopt;
    views.push_back({constant->bytes.get(), d.desc(v)});
  }
  HostTensor value = HostTensor::zeros(result.dtype, result.shape);
  const TensorView output = value.view();
  info(Family::quantize).reference(StageParams(params), views, {&output, 1});
  return value;
}

// QuantizeLinear and DequantizeLinear.
void lower_linear(Lowering& l, const Group& group, const Op& op, QuantizeParams params, DType zero_type, int64_t axis) {
  Draft& d = l.draft;
  const GraphTensor& y = l.result(group);
  const int x = l.value(op.inputs[0]);
  std::vector<int> inputs{x, l.value(op.inputs[1])};
  params.axis = static_cast<int>(axis);
  if (params.block > 0 && given(op, 2)) {
    inputs.push_back(l.value(op.inputs[2]));
  } else {
    const int zero = zero_point(l, op, 2, zero_type);
    // Zeros that are not given are the same for every block too.
    inputs.push_back(params.block > 0 ? along(l, zero, 0, d.desc(inputs[1]).shape) : along(l, zero, axis, y.shape));
  }
  if (params.block == 0) inputs[1] = along(l, inputs[1], axis, y.shape);
  if (is_narrow_float(d.desc(x).dtype)) {
    if (auto value = constant_of(d, params, inputs, y)) return l.set(group.output, d.constant(y.name, std::move(*value)));
  }
  const int out = d.make(y.name, y.dtype, y.shape, d.desc(x).layout.order);
  d.step(op.name, l.nodes(group), StageParams(params), inputs, {out});
  l.set(group.output, out);
}

void lower_dynamic(Lowering& l, const Group& group, const Op& op) {
  Draft& d = l.draft;
  const int x = l.value(op.inputs[0]);
  QuantizeParams params;
  params.kind = QuantizeKind::dynamic;
  const std::vector<int> outputs{d.make(l.result(group).name, DType::u8, d.desc(x).shape, d.desc(x).layout.order),
                                 d.make(op.name + "/scale", DType::f32, {}, {}), d.make(op.name + "/zero", DType::u8, {}, {})};
  d.step(op.name, l.nodes(group), StageParams(params), {x}, outputs);
  for (size_t i = 0; i < op.outputs.size() && i < outputs.size(); ++i)
    if (op.outputs[i] != kAbsent) l.set(op.outputs[i], outputs[i]);
}

void lower_add(Lowering& l, const Group& group, const Op& op, const QuantizedAddOp& add) {
  Draft& d = l.draft;
  const GraphTensor& y = l.result(group);
  QuantizeParams params;
  params.kind = QuantizeKind::add;
  if (add.clip) params.clip = true, params.low = add.clip->low, params.high = add.clip->high;
  int a = l.value(op.inputs[0]), b = l.value(op.inputs[3]);
  // The layout of an operand that has the result's shape.
  const int model = d.desc(a).shape == y.shape ? a : b;
  const Dims order = d.desc(model).shape == y.shape ? d.desc(model).layout.order : order_row_major(y.shape.size());
  for (int* v : {&a, &b}) {
    if (d.desc(*v).shape == y.shape) *v = d.in_order(*v, order, "layout");
    *v = d.view(*v, broadcast_view(d.desc(*v), y.shape));
  }
  const auto scale = [&](size_t i) { return along(l, l.value(op.inputs[i]), 0, {}); };
  const auto zero = [&](size_t i, DType type) { return along(l, zero_point(l, op, i, type), 0, {}); };
  const DType a_type = d.desc(a).dtype, b_type = d.desc(b).dtype;
  const std::vector<int> inputs{a, scale(1), zero(2, a_type), b, scale(4), zero(5, b_type), scale(6), zero(7, y.dtype)};
  const int out = d.make(y.name, y.dtype, y.shape, order);
  d.step(op.name, l.nodes(group), StageParams(params), inputs, {out});
  l.set(group.output, out);
}

void lower_average(Lowering& l, const Group& group, const Op& op, bool channels_last) {
  Draft& d = l.draft;
  const GraphTensor& y = l.result(group);
  const int rank = y.shape.size();
  int x = l.value(op.inputs[0]);
  Dims forward{0}, backward{0};  // the channels to axis 1, and back
  if (channels_last) {
    forward.push_back(rank - 1);
    for (int i = 1; i < rank - 1; ++i) forward.push_back(i), backward.push_back(i + 1);
    backward.push_back(1);
    x = d.view(x, transpose_view(d.desc(x), forward));
  }
  Dims shape = Dims::filled(rank, 1);
  shape[0] = d.desc(x).shape[0], shape[1] = d.desc(x).shape[1];
  x = d.channels_innermost(x);
  const auto scalar = [&](int v) { return along(l, v, 0, {}); };
  const std::vector<int> inputs{x, scalar(l.value(op.inputs[1])), scalar(zero_point(l, op, 2, d.desc(x).dtype)),
                                scalar(l.value(op.inputs[3])), scalar(zero_point(l, op, 4, y.dtype))};
  QuantizeParams params;
  params.kind = QuantizeKind::average;
  const int out = d.make(y.name, y.dtype, shape, order_channels_last(rank));
  d.step(op.name, l.nodes(group), StageParams(params), inputs, {out});
  l.set(group.output, channels_last ? d.view(out, transpose_view(d.desc(out), backward)) : out);
}

}  // namespace

Result<bool> lower_quantize(Lowering& l, const Group& group) {
  const Op& op = l.op(group);
  Status done = ok();
  QuantizeParams params;
  if (const auto* quantize = std::get_if<QuantizeOp>(&op.params)) {
    params.block = quantize->block;
    if (quantize->saturate && ends_in_nan_or_infinity(quantize->to)) {
      params.clip = true;
      params.high = static_cast<int64_t>(largest_of(quantize->to)), params.low = -params.high;
    }
    lower_linear(l, group, op, params, quantize->to, quantize->axis);
  } else if (const auto* dequantize = std::get_if<DequantizeOp>(&op.params)) {
    params.kind = QuantizeKind::dequantize, params.block = dequantize->block;
    lower_linear(l, group, op, params, l.graph.tensor(op.inputs[0]).dtype, dequantize->axis);
  } else if (std::holds_alternative<DynamicQuantizeOp>(op.params)) {
    lower_dynamic(l, group, op);
  } else if (const auto* conv = std::get_if<QuantizedConvOp>(&op.params)) {
    done = lower_conv(l, group, op, *conv);
  } else if (const auto* matmul = std::get_if<QuantizedMatMulOp>(&op.params)) {
    done = lower_matmul(l, group, op, *matmul);
  } else if (const auto* add = std::get_if<QuantizedAddOp>(&op.params)) {
    lower_add(l, group, op, *add);
  } else if (const auto* average = std::get_if<QuantizedAverageOp>(&op.params)) {
    lower_average(l, group, op, average->channels_last);
  } else {
    return false;
  }
  if (!done.ok()) return done.take_error();
  return true;
}

}  // namespace sparkle
