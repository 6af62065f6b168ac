#include "run/evaluate/evaluate_expression.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "families/values/element.h"
#include "graph/expressions/expression.h"

namespace sparkle {
namespace {

constexpr size_t kMostKept = 16;

// The value of a tensor without axes as double precision holds it; nothing where it does not.
bool is_number(const HostTensor& t, double& number) {
  if (t.shape.size() != 0 || is_narrow(t.dtype) || t.dtype == DType::boolean) return false;
  number = load_element(t.dtype, t.bytes.get());
  return is_float(t.dtype) || std::abs(number) <= 9007199254740992.0;
}

std::vector<ExpressionOperand> operands_of(const std::vector<ExpressionArgument>& arguments) {
  std::vector<ExpressionOperand> operands;
  for (const ExpressionArgument& a : arguments) {
    ExpressionOperand o{a.name, a.tensor.dtype, a.tensor.shape, false, 0};
    o.is_number = is_number(a.tensor, o.number);
    operands.push_back(std::move(o));
  }
  return operands;
}

std::string key_of(const std::string& text, const std::vector<ExpressionOperand>& operands) {
  std::string key = text;
  char number[40];
  for (const ExpressionOperand& o : operands) {
    key += '\0' + o.name + '\0' + std::string(name_of(o.dtype)) + o.shape.to_string();
    if (!o.is_number) continue;
    std::snprintf(number, sizeof number, "=%a", o.number);
    key += number;
  }
  return key;
}

}  // namespace

Result<ExpressionRunner::Kept> ExpressionRunner::opened(const std::string& text,
                                                        const std::vector<ExpressionArgument>& arguments,
                                                        const std::string& key) const {
  SPARKLE_TRY(expression, parse_expression(text));
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& name = arguments[i].name;
    for (size_t k = 0; k < i; ++k)
      if (arguments[k].name == name) return Error{Reason::bad_usage, "'" + name + "' is given twice."};
    if (std::find(expression.names.begin(), expression.names.end(), name) == expression.names.end())
      return Error{Reason::bad_usage, "'" + name + "' is given, but the expression does not use it."};
  }
  SPARKLE_TRY(graph, expression_graph(expression, operands_of(arguments)));
  const Device& device = backend_->device();
  const bool twice =
      std::any_of(graph.tensors.begin(), graph.tensors.end(), [](const GraphTensor& t) { return t.dtype == DType::f64; });
  if (twice && device.has_workgroups() && !device.unit("alu-f64"))
    return Error{Reason::type_not_served,
                 "The device '" + device.name +
                     "' does not compute in f64, which this expression comes to; convert its operands, as in "
                     "f32(x), or use the device cpu."};
  Kept kept{key, nullptr, {}};
  for (const TensorId id : graph.inputs) kept.inputs.push_back(graph.tensor(id).name);
  SPARKLE_TRY(session, Session::open(std::move(graph), backend_, options_));
  kept.session = std::move(session);
  return kept;
}

Result<HostTensor> ExpressionRunner::run(const std::string& text, const std::vector<ExpressionArgument>& arguments,
                                         RunReport* report) {
  const std::string key = key_of(text, operands_of(arguments));
  std::shared_ptr<Session> session;
  std::vector<std::string> names;
  {
    const std::lock_guard lock(mutex_);
    const auto at = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& k) { return k.key == key; });
    if (at != kept_.end()) {
      session = at->session, names = at->inputs;
      kept_.splice(kept_.begin(), kept_, at);
    }
  }
  if (!session) {
    SPARKLE_TRY(kept, opened(text, arguments, key));
    session = kept.session, names = kept.inputs;
    const std::lock_guard lock(mutex_);
    kept_.push_front(std::move(kept));
    if (kept_.size() > kMostKept) kept_.pop_back();
  }
  std::vector<HostTensor> inputs;
  for (const std::string& name : names)
    inputs.push_back(std::find_if(arguments.begin(), arguments.end(), [&](const auto& a) { return a.name == name; })->tensor);
  SPARKLE_TRY(outputs, session->run(inputs, report));
  return std::move(outputs[0]);
}

}  // namespace sparkle
