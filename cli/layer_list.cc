#include "layer_list.h"

namespace sparkle::cli {

Result<std::vector<NamedProblem>> listed_problems(const std::string& layers, const std::vector<std::string>& convs) {
  std::vector<NamedProblem> problems;
  if (!layers.empty()) {
    SPARKLE_TRY(listed, read_layers(layers));
    problems = std::move(listed);
  }
  for (const std::string& text : convs) {
    SPARKLE_TRY(problem, parse_conv(text));
    problems.push_back({"", problem, 0, ""});
  }
  for (NamedProblem& p : problems) {
    p.problem.epilogue.bias = true;
    p.problem.epilogue.activation = Activation::relu;
  }
  return problems;
}

}  // namespace sparkle::cli
