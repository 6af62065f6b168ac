// The inputs and outputs of a model as it declares them, and whether tensors fit them.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"

namespace sparkle {

struct SessionInput {
  std::string name;
  DType dtype = DType::f32;
  Dims shape;  // -1 where the model leaves a size open
  std::vector<std::string> axis_names;
  bool rank_known = true;
  bool by_value = false;  // shapes depend on its value (Reshape's shape, Resize's scales ...)
};

std::vector<SessionInput> declared_tensors(const Graph& graph, const std::vector<TensorId>& ids);

// Whether the graph declares tensors of the same names and types. Shapes count for inputs: those of outputs follow.
bool same_names(const std::vector<SessionInput>& before, const Graph& graph, const std::vector<TensorId>& ids);
bool same_shapes(const std::vector<SessionInput>& before, const Graph& graph, const std::vector<TensorId>& ids);

// The real sizes where a model declares others, which tools that change a model leave behind. Sizes that are open on either
// side stay as declared.
void correct_sizes(SessionInput& declared, const GraphTensor& real);

// Whether every size is known before a run.
bool all_fixed(const std::vector<SessionInput>& inputs);

// One tensor per input, in order, of its type and a shape that it takes. Errors: bad_input naming the input; size_overflow.
Status check_inputs(const std::vector<SessionInput>& wanted, const std::vector<HostTensor>& given, bool compiled);

}  // namespace sparkle
