// Shapes for a model's inputs from the command line.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "run/session.h"

namespace sparkle::cli {

// One shape per input: from "NAME=1x3x224x224" (or without NAME= for a model of one input), else the model's own with open
// batch sizes taken as 1. Errors: bad_usage naming the input whose shape must be given.
Result<std::vector<Dims>> input_shapes(const std::vector<SessionInput>& inputs, const std::vector<std::string>& given);

// Seeded standard normal values (integers: small non-negative ones) of these shapes.
std::vector<HostTensor> random_inputs(const std::vector<SessionInput>& inputs, const std::vector<Dims>& shapes, uint64_t seed);

}  // namespace sparkle::cli
