// What a model is given while a device is chosen for it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/tensor.h"
#include "prepare/model_inputs.h"

namespace sparkle {

// Seeded random values of the shapes that are given by name (an empty name: of the one input), else of the model's own, `rows`
// where it leaves the first axis open. Errors: bad_usage naming an input of which further sizes are open, or a name that there
// is not.
Result<std::vector<HostTensor>> choice_inputs(const std::vector<SessionInput>& wanted,
                                              const std::vector<std::pair<std::string, Dims>>& shapes, int64_t rows);

}  // namespace sparkle
