// Layers from the command line: those of a list, convolutions and products as text.
#pragma once

#include <string>
#include <vector>

#include "algorithms/problem.h"

namespace sparkle::cli {

struct LayerSelection {
  std::string layers;                // file
  std::vector<std::string> filters;  // only layers of the files with one of these in their names; empty: all
  std::vector<std::string> convs, gemms;
  bool activations = true;  // a ReLU behind convolutions
  std::string batch = {};   // problem file of benchdnn, whose problems carry what it says
  std::string dt = {}, dir = {};
};

// Convolutions come with what a network's layer carries, a bias and a ReLU; products have neither. Errors: those of
// read_layers, read_problem_file, parse_conv and parse_gemm; bad_usage where no layer passes the filters.
Result<std::vector<NamedProblem>> listed_problems(const LayerSelection& selection);

}  // namespace sparkle::cli
