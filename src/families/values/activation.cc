#include "families/values/activation.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace sparkle {
namespace {
constexpr std::array<std::string_view, 15> kNames = {"none",       "relu",    "clip",         "leaky_relu", "elu",
                                                     "selu",       "sigmoid", "hard_sigmoid", "tanh",       "silu",
                                                     "hard_swish", "gelu",    "gelu_tanh",    "softplus",   "mish"};
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }
}  // namespace

std::string_view name_of(Activation activation) { return kNames[static_cast<size_t>(activation)]; }

bool parse_name(std::string_view text, Activation& activation) {
  const auto at = std::find(kNames.begin(), kNames.end(), text);
  if (at == kNames.end()) return false;
  activation = static_cast<Activation>(at - kNames.begin());
  return true;
}

double activate(Activation activation, double a, double b, double x) {
  switch (activation) {
    case Activation::none: return x;
    case Activation::relu: return x < 0 ? 0 : x;
    case Activation::clip: return x < a ? a : x > b ? b : x;
    case Activation::leaky_relu: return x < 0 ? a * x : x;
    case Activation::elu: return x < 0 ? a * std::expm1(x) : x;
    case Activation::selu: return b * (x < 0 ? a * std::expm1(x) : x);
    case Activation::sigmoid: return sigmoid(x);
    case Activation::hard_sigmoid: return std::clamp(a * x + b, 0.0, 1.0);
    case Activation::tanh: return std::tanh(x);
    case Activation::silu: return x * sigmoid(x);
    case Activation::hard_swish: return x * std::clamp(x / 6 + 0.5, 0.0, 1.0);
    case Activation::gelu: return 0.5 * x * (1 + std::erf(x * 0.70710678118654752440));
    case Activation::gelu_tanh: return 0.5 * x * (1 + std::tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
    case Activation::softplus: return softplus(x);
    case Activation::mish: return x * std::tanh(softplus(x));
  }
  return x;
}

double flops_of(Activation activation) {
  switch (activation) {
    case Activation::none:
    case Activation::relu:
    case Activation::clip: return 0;
    case Activation::leaky_relu:
    case Activation::hard_sigmoid:
    case Activation::hard_swish: return 4;
    case Activation::elu:
    case Activation::selu:
    case Activation::sigmoid:
    case Activation::silu: return 26;
    case Activation::tanh:
    case Activation::gelu_tanh: return 32;
    case Activation::mish: return 40;
    case Activation::softplus: return 50;
    case Activation::gelu: return 62;
  }
  return 0;
}

}  // namespace sparkle
