// What no plan computes of an operator whatever the shapes of its inputs, as far as its own fields and constants tell: so that
// it is said when a model is opened.
#pragma once

#include <optional>
#include <string>

#include "graph/graph.h"

namespace sparkle {

constexpr int kMostSpatialAxes = 3;

std::string too_many_axes(int spatial);
// What is beyond, as refusals say it; nothing: it depends on shapes, if on anything.
std::optional<std::string> beyond_limits(const Graph& graph, const Op& op);

}  // namespace sparkle
