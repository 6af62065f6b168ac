// Inputs to measure ranges on and to compare answers with: tensors, pictures, and folders of either.
#pragma once

#include <string>
#include <vector>

#include "fix/precision/ranges.h"
#include "run_command/run_options.h"

namespace sparkle::cli {

// `options.inputs`: for models of one input each file is a sample; for others as many files as inputs are. A folder stands for
// the pictures and tensors in it, one that holds input_0.pb for that sample, one that holds test_data_set_* for all of these.
// Pictures become tensors as `sparkle run` makes them. Errors: bad_usage, and what reading says.
Result<std::vector<fix::Sample>> read_samples(const std::vector<SessionInput>& inputs, const RunOptions& options);

}  // namespace sparkle::cli
