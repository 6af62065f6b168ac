// Element-wise operators. Variadic ones (Sum, Max ...) become chains; before opset 7 an operator says by its attributes
// 'broadcast' and 'axis' where its second input lies, which becomes an Unsqueeze to the numpy rule.
#include <algorithm>
#include <limits>

#include "families/values/narrow.h"
#include "families/pointwise/pointwise.h"
#include "onnx/node.h"
#include "onnx/tensor_proto.h"

namespace sparkle {
namespace {
constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <PointwiseOp op>
OpParams plain(Node&) {
  return PointwiseNode{op};
}

PointwiseNode with(PointwiseOp op, double a, double b = 0) { return {op, a, b}; }

// Moves input 1 to axis `axis` of input 0 by trailing axes of size 1; false where the ranks are not known.
bool align_second(Node& node, int64_t axis) {
  const int rank = node.rank(0), inner = node.rank(1);
  if (rank < 0 || inner < 0) return false;
  const bool in_range = axis >= -rank && axis <= rank;
  if (in_range && axis < 0) axis += rank;
  const int64_t trailing = in_range ? rank - axis - inner : -1;
  if (trailing < 0) {
    node.fail(Reason::bad_model, "broadcasts from an axis where its second input does not fit");
    return true;
  }
  if (trailing == 0) return true;
  ReshapeOp unsqueeze{ReshapeOp::Form::unsqueeze, {}, false, true};
  for (int64_t i = 0; i < trailing; ++i) unsqueeze.target.push_back(inner + i);
  node.inputs[1] = node.step(unsqueeze, {node.inputs[1]});
  return true;
}

// Inputs of one shape, as before numpy's rule. Where ranks are known a contradiction is said at once.
PointwiseNode of_one_shape(Node& node, PointwiseOp op) {
  const int first = node.rank(0);
  for (int i = 1; i < static_cast<int>(node.inputs.size()); ++i)
    if (first >= 0 && node.rank(i) >= 0 && node.rank(i) != first)
      node.fail(Reason::bad_model, "has inputs of " + std::to_string(first) + " and " + std::to_string(node.rank(i)) +
                                       " axes, which opset " + std::to_string(node.opset) +
                                       " allows only where the operator has an attribute 'broadcast' that is 1");
  return {op, 0, 0, Repeats::none};
}

template <PointwiseOp op>
OpParams binary(Node& node) {
  if (node.opset >= 7) return PointwiseNode{op};
  const bool broadcast = node.flag("broadcast", false);
  const bool placed = node.has("axis");
  const int64_t axis = node.integer("axis", 0);
  if (!broadcast) return of_one_shape(node, op);
  if (placed && !align_second(node, axis)) return UnknownOp{"its attribute 'axis' places an input of unknown rank"};
  return PointwiseNode{op, 0, 0, Repeats::second};
}

// op(op(x0, x1), x2) ...; one input is itself.
template <PointwiseOp op>
OpParams chain(Node& node) {
  if (node.inputs.size() == 1) return PointwiseNode{PointwiseOp::identity};
  const PointwiseNode one = node.opset < 8 ? of_one_shape(node, op) : PointwiseNode{op};
  while (node.inputs.size() > 2) {
    const TensorId first = node.step(one, {node.inputs[0], node.inputs[1]});
    node.inputs.erase(node.inputs.begin());
    node.inputs[0] = first;
  }
  return one;
}

OpParams read_mean(Node& node) {
  const double count = static_cast<double>(node.inputs.size());
  if (node.inputs.size() == 1) return PointwiseNode{PointwiseOp::identity};
  const OpParams last = chain<PointwiseOp::add>(node);  // leaves the two inputs of the last addition
  const TensorId sum = node.step(last, node.inputs);
  node.inputs = {sum};
  return with(PointwiseOp::affine, 1 / count);
}

OpParams read_leaky_relu(Node& node) { return with(PointwiseOp::leaky_relu, node.real("alpha", 0.01)); }
OpParams read_elu(Node& node) { return with(PointwiseOp::elu, node.real("alpha", 1)); }
OpParams read_celu(Node& node) { return with(PointwiseOp::celu, node.real("alpha", 1)); }
OpParams read_thresholded_relu(Node& node) { return with(PointwiseOp::thresholded_relu, node.real("alpha", 1)); }
OpParams read_hard_sigmoid(Node& node) {
  return with(PointwiseOp::hard_sigmoid, node.real("alpha", 0.2), node.real("beta", 0.5));
}
OpParams read_selu(Node& node) {  // opset 1 rounded the constants of the paper
  const bool old = node.opset < 6;
  return with(PointwiseOp::selu, node.real("alpha", old ? 1.6732 : 1.67326319217681884765625),
              node.real("gamma", old ? 1.0507 : 1.05070102214813232421875));
}

OpParams read_gelu(Node& node) {
  const std::string form = node.text("approximate", "none");
  if (form == "none") return PointwiseNode{PointwiseOp::gelu};
  if (form == "tanh") return PointwiseNode{PointwiseOp::gelu_tanh};
  return UnknownOp{"its attribute 'approximate' is '" + form + "'"};
}

OpParams read_swish(Node& node) {
  const double alpha = node.real("alpha", 1);
  if (alpha == 1) return PointwiseNode{PointwiseOp::silu};
  const TensorId x = node.inputs[0];
  const TensorId scaled = node.step(with(PointwiseOp::affine, alpha), {x});
  node.inputs = {x, node.step(PointwiseNode{PointwiseOp::sigmoid}, {scaled})};
  return PointwiseNode{PointwiseOp::mul};
}

// alpha's sigmoid of the gate, times the gate and the other input.
OpParams read_swiglu(Node& node) {
  const double alpha = node.real("alpha", 1);
  TensorId gate = node.inputs[0];
  if (alpha == 1) {
    gate = node.step(PointwiseNode{PointwiseOp::silu}, {gate});
  } else {
    const TensorId scaled = node.step(with(PointwiseOp::affine, alpha), {gate});
    gate = node.step(PointwiseNode{PointwiseOp::mul}, {gate, node.step(PointwiseNode{PointwiseOp::sigmoid}, {scaled})});
  }
  node.inputs[0] = gate;
  return of_one_shape(node, PointwiseOp::mul);
}

// Nearer to zero by the bias beyond lambd, zero within.
OpParams read_shrink(Node& node) {
  const double lambd = node.real("lambd", 0.5), bias = node.real("bias", 0);
  const TensorId x = node.inputs[0];
  const TensorId above = node.step(PointwiseNode{PointwiseOp::greater}, {x, node.number_like(lambd, x)});
  const TensorId below = node.step(PointwiseNode{PointwiseOp::less}, {x, node.number_like(-lambd, x)});
  const TensorId lowered = node.step(PointwiseNode{PointwiseOp::select},
                                     {above, node.step(with(PointwiseOp::affine, 1, -bias), {x}), node.number_like(0, x)});
  node.inputs = {below, node.step(with(PointwiseOp::affine, 1, bias), {x}), lowered};
  return PointwiseNode{PointwiseOp::select};
}

OpParams read_is_inf(Node& node) {
  const bool negative = node.flag("detect_negative", true), positive = node.flag("detect_positive", true);
  const TensorId x = node.inputs[0];
  if (!negative && !positive) {
    node.inputs = {x, x};
    return PointwiseNode{PointwiseOp::less};
  }
  const TensorId read = negative && positive ? node.step(PointwiseNode{PointwiseOp::abs}, {x}) : x;
  node.inputs = {read, node.number_like(positive ? kInfinity : -kInfinity, x)};
  return PointwiseNode{PointwiseOp::equal};
}

// Since opset 11 the bounds are inputs 1 and 2, which stay until constants are resolved.
OpParams read_clip(Node& node) {
  if (node.opset >= 11) return with(PointwiseOp::clip, -kInfinity, kInfinity);
  return with(PointwiseOp::clip, node.real("min", -kInfinity), node.real("max", kInfinity));
}

// Before opset 7 a slope with one axis belongs to the channels.
OpParams read_prelu(Node& node) {
  if (node.opset < 7) {
    const HostTensor* slope = node.constant(1);
    const bool single = slope && slope->elements() == 1;
    if (!single && node.rank(1) != 1) return UnknownOp{"its slope is not known to have one axis, as opset 6 wants"};
    if (!single && !align_second(node, 1)) return UnknownOp{"its input of unknown rank has a slope per channel"};
  }
  return PointwiseNode{PointwiseOp::prelu};
}

// fmod=1 takes the sign of the dividend, fmod=0 that of the divisor.
OpParams read_mod(Node& node) { return PointwiseNode{node.flag("fmod", false) ? PointwiseOp::mod : PointwiseOp::floor_mod}; }

// What Cast and CastLike say about 8-bit floats.
OpParams cast_to(Node& node, DType type) {
  CastOp op{type, node.flag("saturate", true), PowerRounding::up};
  const std::string rounding = node.text("round_mode", "up");
  if (!parse_name(rounding, op.rounding)) return UnknownOp{"its attribute 'round_mode' is '" + rounding + "'"};
  return op;
}

OpParams read_cast(Node& node) {
  if (node.opset < 6) {
    const std::string name = node.text("to", "");
    int value = 0;
    for (int i = 1; i <= ::onnx::TensorProto::DataType_MAX; ++i)
      if (::onnx::TensorProto::DataType_IsValid(i) && onnx_type_name(i).starts_with(name + " ")) value = i;
    if (const auto type = dtype_from_onnx(value)) return cast_to(node, *type);
    return UnknownOp{"its attribute 'to' is '" + name + "'"};
  }
  const int64_t to = node.integer("to", 0);
  if (const auto type = dtype_from_onnx(static_cast<int>(std::clamp<int64_t>(to, 0, 1000)))) return cast_to(node, *type);
  return UnknownOp{"its attribute 'to' is " + onnx_type_name(static_cast<int>(std::clamp<int64_t>(to, 0, 1000)))};
}

OpParams read_cast_like(Node& node) {
  const auto type = node.element_type(1);
  OpParams op = cast_to(node, type.value_or(DType::f32));
  if (type) node.inputs.resize(1);  // else it is that of input 1, which inference finds
  return op;
}

using P = PointwiseOp;
constexpr OperatorRow kRows[] = {
    {"Identity", plain<P::identity>, 1},
    {"Neg", plain<P::neg>, 1},
    {"Abs", plain<P::abs>, 1},
    {"Sign", plain<P::sign>, 1},
    {"Reciprocal", plain<P::reciprocal>, 1},
    {"Sqrt", plain<P::sqrt>, 1},
    {"Exp", plain<P::exp>, 1},
    {"Log", plain<P::log>, 1},
    {"Sin", plain<P::sin>, 1},
    {"Cos", plain<P::cos>, 1},
    {"Tan", plain<P::tan>, 1},
    {"Asin", plain<P::asin>, 1},
    {"Acos", plain<P::acos>, 1},
    {"Atan", plain<P::atan>, 1},
    {"Sinh", plain<P::sinh>, 1},
    {"Cosh", plain<P::cosh>, 1},
    {"Asinh", plain<P::asinh>, 1},
    {"Acosh", plain<P::acosh>, 1},
    {"Atanh", plain<P::atanh>, 1},
    {"Erf", plain<P::erf>, 1},
    {"Floor", plain<P::floor>, 1},
    {"Ceil", plain<P::ceil>, 1},
    {"Round", plain<P::round>, 1},
    {"IsNaN", plain<P::is_nan>, 1},
    {"Not", plain<P::logical_not>, 1},
    {"Relu", plain<P::relu>, 1},
    {"Sigmoid", plain<P::sigmoid>, 1},
    {"Tanh", plain<P::tanh>, 1},
    {"Softplus", plain<P::softplus>, 1},
    {"Softsign", plain<P::softsign>, 1},
    {"Mish", plain<P::mish>, 1},
    {"HardSwish", plain<P::hard_swish>, 1},
    {"LeakyRelu", read_leaky_relu, 1},
    {"Elu", read_elu, 1},
    {"Celu", read_celu, 1},
    {"ThresholdedRelu", read_thresholded_relu, 1},
    {"HardSigmoid", read_hard_sigmoid, 1},
    {"Selu", read_selu, 1},
    {"Gelu", read_gelu, 1},
    {"Swish", read_swish, 1},
    {"SwiGLU", read_swiglu, 2},
    {"Shrink", read_shrink, 1},
    {"IsInf", read_is_inf, 1},
    {"Clip", read_clip, 1},
    {"PRelu", read_prelu, 2},
    {"Add", binary<P::add>, 2},
    {"Sub", binary<P::sub>, 2},
    {"Mul", binary<P::mul>, 2},
    {"Div", binary<P::div>, 2},
    {"Pow", binary<P::pow>, 2},
    {"And", binary<P::logical_and>, 2},
    {"Or", binary<P::logical_or>, 2},
    {"Xor", binary<P::logical_xor>, 2},
    {"Equal", binary<P::equal>, 2},
    {"Less", binary<P::less>, 2},
    {"Greater", binary<P::greater>, 2},
    {"LessOrEqual", plain<P::less_equal>, 2},
    {"GreaterOrEqual", plain<P::greater_equal>, 2},
    {"Mod", read_mod, 2},
    {"Where", plain<P::select>, 3},
    {"Sum", chain<P::add>, 1},
    {"Max", chain<P::max>, 1},
    {"Min", chain<P::min>, 1},
    {"Mean", read_mean, 1},
    {"Cast", read_cast, 1},
    {"CastLike", read_cast_like, 2},
};
}  // namespace

std::span<const OperatorRow> pointwise_operators() { return kRows; }

}  // namespace sparkle
