// A model as `check` looks at it: its weights left where they are, its shapes bound.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "check/check.h"

namespace sparkle {

struct ModelToCheck {
  Graph graph;           // called as its file is
  CheckOptions options;  // with the sizes that the file leaves open
  Graph as_read;         // before its shapes were bound
};

// `bind`: the graph as it was read -> simplified, with all shapes. Errors: those of read_onnx_model and of `bind`.
Result<ModelToCheck> open_model_to_check(const std::string& path, const std::function<Result<Graph>(Graph)>& bind);

// Shapes of inputs by name; others are the model's own, a first axis that is open being 1. Errors: bad_usage for a name that no
// input has and for sizes that stay open; those of bind().
Result<Graph> bound_by_name(Graph graph, const std::vector<std::pair<std::string, Dims>>& shapes);

}  // namespace sparkle
