// Element-wise operators of the writer: those with a counterpart by name, and small expressions for the others.
#include <cmath>

#include "networks/write_ops.h"

namespace sparkle {
namespace {
using P = PointwiseOp;

constexpr struct {
  P op;
  std::string_view type;
} kSame[] = {
    {P::identity, "Identity"},
    {P::add, "Add"},
    {P::sub, "Sub"},
    {P::mul, "Mul"},
    {P::div, "Div"},
    {P::pow, "Pow"},
    {P::min, "Min"},
    {P::max, "Max"},
    {P::select, "Where"},
    {P::less, "Less"},
    {P::less_equal, "LessOrEqual"},
    {P::greater, "Greater"},
    {P::greater_equal, "GreaterOrEqual"},
    {P::equal, "Equal"},
    {P::logical_and, "And"},
    {P::logical_or, "Or"},
    {P::logical_xor, "Xor"},
    {P::logical_not, "Not"},
    {P::neg, "Neg"},
    {P::abs, "Abs"},
    {P::sign, "Sign"},
    {P::reciprocal, "Reciprocal"},
    {P::sqrt, "Sqrt"},
    {P::exp, "Exp"},
    {P::log, "Log"},
    {P::sin, "Sin"},
    {P::cos, "Cos"},
    {P::tan, "Tan"},
    {P::asin, "Asin"},
    {P::acos, "Acos"},
    {P::atan, "Atan"},
    {P::sinh, "Sinh"},
    {P::cosh, "Cosh"},
    {P::asinh, "Asinh"},
    {P::acosh, "Acosh"},
    {P::atanh, "Atanh"},
    {P::erf, "Erf"},
    {P::floor, "Floor"},
    {P::ceil, "Ceil"},
    {P::round, "Round"},
    {P::is_nan, "IsNaN"},
    {P::relu, "Relu"},
    {P::prelu, "PRelu"},
    {P::sigmoid, "Sigmoid"},
    {P::tanh, "Tanh"},
    {P::hard_swish, "HardSwish"},
    {P::softplus, "Softplus"},
    {P::softsign, "Softsign"},
    {P::mish, "Mish"},
};

// A scalar of the type of `like`.
std::string scalar(ModelWriter& model, const Op& op, std::string_view what, double value, const std::string& like) {
  const std::string wish = op.name + "." + std::string(what);
  const std::string plain = model.constant(wish, HostTensor::of(DType::f32, {}, std::vector<float>{static_cast<float>(value)}));
  if (model.only_f32()) return plain;
  const std::string typed = model.fresh(wish + ".typed");
  model.node(typed, "CastLike", {plain, like}, {typed});
  return typed;
}

void write_affine(ModelWriter& model, const Op& op, const PointwiseNode& node, const std::string& x, const std::string& y) {
  const std::string product = node.b == 0 ? y : model.fresh(op.name + ".product");
  model.node(op.name, "Mul", {x, scalar(model, op, "factor", node.a, x)}, {product});
  if (node.b != 0) model.node(op.name + ".shift", "Add", {product, scalar(model, op, "summand", node.b, x)}, {y});
}

void write_clip(ModelWriter& model, const Op& op, const PointwiseNode& node, std::vector<std::string> inputs,
                const std::string& y) {
  inputs.resize(3);
  if (inputs[1].empty() && std::isfinite(node.a)) inputs[1] = scalar(model, op, "min", node.a, inputs[0]);
  if (inputs[2].empty() && std::isfinite(node.b)) inputs[2] = scalar(model, op, "max", node.b, inputs[0]);
  model.node(op.name, "Clip", inputs, {y});
}
}  // namespace

Status write_pointwise(ModelWriter& model, const Op& op, const PointwiseNode& node) {
  std::vector<std::string> inputs;
  for (TensorId id : op.inputs) inputs.push_back(model.name(id));
  const std::string y = model.name(op.outputs[0]);
  for (const auto& row : kSame)
    if (row.op == node.op) {
      model.node(op.name, row.type, inputs, {y});
      return ok();
    }
  const auto with = [&](std::string_view type, std::string_view a, std::string_view b) {
    auto& proto = model.node(op.name, type, inputs, {y});
    if (!a.empty()) set(proto, a, node.a);
    if (!b.empty()) set(proto, b, node.b);
  };
  switch (node.op) {
    case P::leaky_relu: with("LeakyRelu", "alpha", ""); break;
    case P::elu: with("Elu", "alpha", ""); break;
    case P::selu: with("Selu", "alpha", "gamma"); break;
    case P::celu: with("Celu", "alpha", ""); break;
    case P::thresholded_relu: with("ThresholdedRelu", "alpha", ""); break;
    case P::hard_sigmoid: with("HardSigmoid", "alpha", "beta"); break;
    case P::gelu: with("Gelu", "", ""); break;
    case P::gelu_tanh: set(model.node(op.name, "Gelu", inputs, {y}), "approximate", std::string_view("tanh")); break;
    case P::mod: set(model.node(op.name, "Mod", inputs, {y}), "fmod", int64_t{1}); break;
    case P::clip: write_clip(model, op, node, inputs, y); break;
    case P::affine: write_affine(model, op, node, inputs[0], y); break;
    case P::silu: {
      const std::string gate = model.fresh(op.name + ".gate");
      model.node(op.name + ".sigmoid", "Sigmoid", {inputs[0]}, {gate});
      model.node(op.name, "Mul", {inputs[0], gate}, {y});
      break;
    }
    case P::fma: {
      const std::string product = model.fresh(op.name + ".product");
      model.node(op.name + ".mul", "Mul", {inputs[0], inputs[1]}, {product});
      model.node(op.name, "Add", {product, inputs[2]}, {y});
      break;
    }
    default:
      return Error{Reason::operator_not_served, "Operator '" + op.name + "' (" + std::string(name_of(node.op)) +
                                                    ") has no counterpart in ONNX and cannot be written."};
  }
  return ok();
}

}  // namespace sparkle
