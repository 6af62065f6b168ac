// Seeded random values for a model's inputs, for runs on nobody's data.
#pragma once

#include <vector>

#include "base/tensor.h"
#include "prepare/model_inputs.h"

namespace sparkle {

// What Session::prepare() needs for random inputs: shapes, and values where shapes depend on them.
Result<std::vector<HostTensor>> unfilled_inputs(const std::vector<SessionInput>& inputs, const std::vector<Dims>& shapes);
// Gives the others memory and seeded standard normal values (integers: zeros). Errors: out_of_memory.
Status fill_inputs(const std::vector<SessionInput>& inputs, std::vector<HostTensor>& tensors, uint64_t seed);

}  // namespace sparkle
