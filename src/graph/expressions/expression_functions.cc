#include "graph/expressions/expression_functions.h"

#include <algorithm>
#include <vector>

namespace sparkle {
namespace {

using P = PointwiseOp;
constexpr ExpressionFunction kFunctions[] = {
    {"abs", P::abs},
    {"sign", P::sign},
    {"neg", P::neg},
    {"reciprocal", P::reciprocal},
    {"sqrt", P::sqrt},
    {"exp", P::exp},
    {"log", P::log},
    {"sin", P::sin},
    {"cos", P::cos},
    {"tan", P::tan},
    {"asin", P::asin},
    {"acos", P::acos},
    {"atan", P::atan},
    {"sinh", P::sinh},
    {"cosh", P::cosh},
    {"tanh", P::tanh},
    {"asinh", P::asinh},
    {"acosh", P::acosh},
    {"atanh", P::atanh},
    {"erf", P::erf},
    {"floor", P::floor},
    {"ceil", P::ceil},
    {"round", P::round},
    {"is_nan", P::is_nan},
    {"relu", P::relu},
    {"sigmoid", P::sigmoid},
    {"silu", P::silu},
    {"swish", P::silu},
    {"hard_swish", P::hard_swish},
    {"gelu", P::gelu},
    {"gelu_tanh", P::gelu_tanh},
    {"softplus", P::softplus},
    {"softsign", P::softsign},
    {"mish", P::mish},
    {"leaky_relu", P::leaky_relu, 1, 1, false, {0.01}},
    {"elu", P::elu, 1, 1, false, {1}},
    {"celu", P::celu, 1, 1, false, {1}},
    {"thresholded_relu", P::thresholded_relu, 1, 1, false, {1}},
    {"selu", P::selu, 1, 2, false, {1.67326319217681884765625, 1.05070102214813232421875}},
    {"hard_sigmoid", P::hard_sigmoid, 1, 2, false, {0.2, 0.5}},
    {"clip", P::clip, 1, 2, true},
    {"affine", P::affine, 1, 2, true},
    {"add", P::add, 2},
    {"sub", P::sub, 2},
    {"mul", P::mul, 2},
    {"div", P::div, 2},
    {"pow", P::pow, 2},
    {"mod", P::floor_mod, 2},
    {"fmod", P::mod, 2},
    {"prelu", P::prelu, 2},
    {"min", P::min, kAnyValues},
    {"max", P::max, kAnyValues},
    {"fma", P::fma, 3},
    {"where", P::select, 3},
    {"select", P::select, 3},
};

size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t corner = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, corner + (a[i - 1] != b[j - 1])});
      corner = above;
    }
  }
  return row[b.size()];
}

}  // namespace

std::span<const ExpressionFunction> expression_function_list() { return kFunctions; }

const ExpressionFunction* expression_function(std::string_view name) {
  const auto at =
      std::find_if(std::begin(kFunctions), std::end(kFunctions), [&](const ExpressionFunction& f) { return f.name == name; });
  return at == std::end(kFunctions) ? nullptr : &*at;
}

std::string_view nearest_function(std::string_view name) {
  std::string_view nearest;
  size_t least = 3;
  if (name.size() > 40) return nearest;
  for (const ExpressionFunction& f : kFunctions)
    if (const size_t d = distance(name, f.name); d < least && d < f.name.size()) nearest = f.name, least = d;
  return nearest;
}

}  // namespace sparkle
