// Functions of expressions: which operation each is, how many values it takes, and its parameters, which are numbers.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "families/pointwise/pointwise.h"

namespace sparkle {

struct ExpressionFunction {
  std::string_view name;
  PointwiseOp op;
  int values = 1;       // that it takes; kAnyValues: two or more, one after the other
  int parameters = 0;   // numbers behind them
  bool needed = false;  // the parameters have no defaults
  std::array<double, 2> defaults{};
};
inline constexpr int kAnyValues = -1;

std::span<const ExpressionFunction> expression_function_list();
// nullptr: there is none of this name.
const ExpressionFunction* expression_function(std::string_view name);
// The name of a function or type that is nearest; "" where none is near.
std::string_view nearest_function(std::string_view name);

}  // namespace sparkle
