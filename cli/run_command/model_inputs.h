// Shapes for a model's inputs from the command line.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "prepare/random_inputs.h"
#include "run/session.h"

namespace sparkle::cli {

// One shape per input: from "NAME=1x3x224x224" (or without NAME= for a model of one input), else the model's own with open
// batch sizes taken as 1. Errors: bad_usage naming the input whose shape must be given.
Result<std::vector<Dims>> input_shapes(const std::vector<SessionInput>& inputs, const std::vector<std::string>& given);

// The graph with these shapes, ready to be planned. Errors: those of input_shapes; operator_not_served
// where an input's value decides shapes.
Result<Graph> bound_graph(Graph graph, const std::vector<std::string>& given);

}  // namespace sparkle::cli
