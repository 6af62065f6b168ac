#include "bench_command/layer_list.h"

#include <algorithm>

#include "algorithms/problem_file.h"
#include "command.h"

namespace sparkle::cli {

Result<std::vector<NamedProblem>> listed_problems(const LayerSelection& selection) {
  const auto wanted = [&](const NamedProblem& p) {
    return selection.filters.empty() || std::ranges::any_of(selection.filters, [&](const std::string& part) {
             return p.name.find(part) != std::string::npos;
           });
  };
  std::vector<NamedProblem> problems;
  if (!selection.layers.empty()) {
    SPARKLE_TRY(listed, read_layers(selection.layers));
    std::ranges::copy_if(listed, std::back_inserter(problems), wanted);
    if (problems.empty() && !selection.filters.empty())
      return Error{Reason::bad_usage, "No layer of '" + selection.layers + "' has a name with what --filter gives in it."};
  }
  for (const std::string& text : selection.convs) {
    SPARKLE_TRY(problem, parse_conv(text));
    problems.push_back({"", problem, 0, ""});
  }
  for (const std::string& text : selection.gemms) {
    SPARKLE_TRY(problem, parse_gemm(text));
    problems.push_back({"", problem, 0, ""});
  }
  for (NamedProblem& p : problems) {
    if (p.problem.kind == ProblemKind::matmul) continue;
    p.problem.epilogue.bias = true;
    if (selection.activations) p.problem.epilogue.activation = Activation::relu;
  }
  if (!selection.batch.empty()) {
    SPARKLE_TRY(file, read_problem_file(selection.batch, {selection.dt, selection.dir}));
    for (const std::string& note : file.notes) print_note(note);
    std::ranges::copy_if(file.problems, std::back_inserter(problems), wanted);
    if (problems.empty())
      return Error{Reason::bad_usage, "No problem of '" + selection.batch + "' has a name with what --filter gives in it."};
  }
  return problems;
}

}  // namespace sparkle::cli
