// Which operators of a model no plan supports: by themselves, and by the types that are known before any shape is.
#pragma once

#include <optional>
#include <vector>

#include "families/types.h"
#include "graph/graph.h"
#include "graph/refusals.h"

namespace sparkle {

// Parameters of a stage that computes an operator, as far as its family's row asks for them: which element types the operator's
// own tensors may have (type_row). Nothing is held where no row says: f32 alone.
StageParams stage_params(const OpParams& params);

// Errors: type_not_served where a tensor of a bound operator has a type that its kernels do not support.
Status check_types(const Graph& graph, const Op& op);

// All that is known to be refused of a graph as the reader gives it: operators that outputs need and that are not supported,
// types, outputs that the model declares with another type than they have. What only shapes tell is said by bind() and
// make_plan().
std::vector<Refusal> unsupported(const Graph& graph);
// The same of a body of an operator, whose inputs may have any type.
std::vector<Refusal> unsupported(const Graph& graph, const std::vector<std::optional<DType>>& of_inputs);
// The same as an Error naming each; `model` as errors call it.
Status check_supported(const Graph& graph, const std::string& model);

}  // namespace sparkle
