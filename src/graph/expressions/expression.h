// Expressions that users write, "silu(x) * a + 0.5": parsed into steps of the pointwise family, then into a graph for given
// operands. The grammar and the rules for types are in docs/expressions.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "graph/graph.h"

namespace sparkle {

// One value of an expression: a name's operand, a number, another type, or an operation on values before it.
struct ExpressionStep {
  enum class Kind : uint8_t { operand, number, cast, operation } kind = Kind::operand;
  PointwiseOp op = PointwiseOp::identity;
  int x = 0, y = 0, z = 0;  // steps; of an operand x is its place in `names`
  double a = 0, b = 0;      // parameters of the operation; a is the number
  DType to = DType::f32;    // of a cast
  size_t at = 0;            // byte of the text that an error about it points at
};

struct Expression {
  std::string text;
  std::vector<std::string> names;     // of operands, as they first occur
  std::vector<ExpressionStep> steps;  // the last is the result; numbers among numbers are worked out already
};

// Errors: bad_format, "column 7: ..." with the line and a caret below.
Result<Expression> parse_expression(std::string_view text);

// "column 7: message" and, on two lines of their own, the text and a caret under byte `at`.
Error error_at(Reason reason, std::string_view text, size_t at, const std::string& message);

// What a name stands for: a tensor of this type and shape, or a number, which takes the type of what it meets.
struct ExpressionOperand {
  std::string name;
  DType dtype = DType::f32;
  Dims shape;
  bool is_number = false;
  double number = 0;
};

// The graph: one input per operand that is a tensor and used, in the order of `names`; one output. Errors, all pointing at the
// text: bad_usage for a name that is not given, bad_shape, type_not_served, bad_model for an integer constant divided by zero.
Result<Graph> expression_graph(const Expression& expression, const std::vector<ExpressionOperand>& operands);

// One element in double precision: the definition, with operands in the order of `names`.
double evaluate(const Expression& expression, const std::vector<double>& operands);

// Names of functions that expressions know, for documentation and tests.
std::vector<std::string> expression_functions();

}  // namespace sparkle
