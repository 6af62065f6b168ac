#include "families/pointwise/pointwise.h"

#include <algorithm>
#include <cmath>

#include "families/values/activation.h"
#include "families/values/narrow.h"

namespace sparkle {
namespace {
constexpr std::string_view kNames[] = {
#define POINTWISE(op, arity, formula) #op,
#include "families/pointwise/ops.inc"
#undef POINTWISE
};
constexpr int kArities[] = {
#define POINTWISE(op, arity, formula) arity,
#include "families/pointwise/ops.inc"
#undef POINTWISE
};

// The remainder with the sign of y, as in Python: exact, a zero too takes that sign, and an infinite y keeps an x of its sign.
double floor_remainder(double x, double y) {
  const double r = std::fmod(x, y);
  if (r == 0) return std::copysign(0.0, y);
  return (r < 0) != (y < 0) ? r + y : r;
}
}  // namespace

std::string_view name_of(PointwiseOp op) { return kNames[static_cast<size_t>(op)]; }
int arity_of(PointwiseOp op) { return kArities[static_cast<size_t>(op)]; }

bool parse_name(std::string_view text, PointwiseOp& op) {
  const auto at = std::find(std::begin(kNames), std::end(kNames), text);
  if (at == std::end(kNames)) return false;
  op = static_cast<PointwiseOp>(at - std::begin(kNames));
  return true;
}

double evaluate(PointwiseOp op, [[maybe_unused]] double x, double y, double z, double a, double b) {
  switch (op) {
#define POINTWISE(op, arity, formula) \
  case PointwiseOp::op: return static_cast<double>(formula);
#include "families/pointwise/ops.inc"
#undef POINTWISE
  }
  return x;
}

double evaluate(const PointwiseParams& params, std::span<const double> operands) {
  std::vector<double> values(operands.begin(), operands.end());
  for (const PointwiseInstruction& step : params.program)
    values.push_back(evaluate(step.op, values[static_cast<size_t>(step.x)], values[static_cast<size_t>(step.y)],
                              values[static_cast<size_t>(step.z)], step.a, step.b));
  return values.back();
}

std::string expression(const PointwiseParams& params) {
  constexpr size_t kLongest = 200;  // values used twice would double the text again and again
  std::vector<std::string> values;
  const auto value_text = [&](int value) {
    if (value < 0) return std::string("?");
    if (value < params.inputs) return "x" + std::to_string(value);
    const auto at = static_cast<size_t>(value - std::max(params.inputs, 0));
    return at < values.size() ? values[at] : "?";
  };
  for (const PointwiseInstruction& step : params.program) {
    std::string text(name_of(step.op));
    const int arguments[] = {step.x, step.y, step.z};
    text += '(';
    for (int i = 0; i < arity_of(step.op); ++i) {
      if (i) text += ',';
      text += value_text(arguments[i]);
    }
    if (text.size() > kLongest) text = std::string(name_of(step.op)) + "(...";
    values.push_back(text + ')');
  }
  return values.empty() ? "" : values.back();
}

}  // namespace sparkle
