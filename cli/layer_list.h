// Layers from the command line: a list and convolutions as text.
#pragma once

#include <string>
#include <vector>

#include "algorithms/problem.h"

namespace sparkle::cli {

// Each with what a network's layer carries: a bias and a ReLU. Errors: those of read_layers and parse_conv.
Result<std::vector<NamedProblem>> listed_problems(const std::string& layers, const std::vector<std::string>& convs);

}  // namespace sparkle::cli
