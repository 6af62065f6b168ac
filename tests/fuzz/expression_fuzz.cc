// libFuzzer: any text as an expression. What is accepted has a value and, for operands of any types, a graph or an error that
// points into the text; what binds shapes accepts it. Built with SPARKLE_SANITIZE=ON.
#include <cstdlib>

#include "graph/expressions/expression.h"

namespace {

void check_error(const std::string& message) {
  if (!message.starts_with("column ") && !message.starts_with("line ")) std::abort();
  if (message.back() != '^') std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto expression = sparkle::parse_expression(text);
  if (!expression.ok()) {
    check_error(expression.error().message);
    return 0;
  }
  (void)sparkle::evaluate(*expression, std::vector<double>(expression->names.size(), 0.75));
  std::vector<sparkle::ExpressionOperand> operands;
  for (size_t i = 0; i < expression->names.size(); ++i) {
    const auto type = static_cast<sparkle::DType>((data[0] + 5 * i) % sparkle::kDTypes);
    const bool number = (data[0] >> (i % 8) & 1) != 0;
    operands.push_back({expression->names[i], type, i % 2 ? sparkle::Dims{3} : sparkle::Dims{2, 1}, number, 2.5});
  }
  auto graph = sparkle::expression_graph(*expression, operands);
  if (!graph.ok()) {
    check_error(graph.error().message);
    return 0;
  }
  std::vector<sparkle::InputBinding> shapes;
  for (const sparkle::TensorId id : graph->inputs) shapes.push_back({graph->tensor(id).shape, std::nullopt});
  if (!sparkle::bind(*graph, shapes).ok()) std::abort();
  return 0;
}
