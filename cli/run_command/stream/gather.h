// Items put together to batches, and outputs of batches taken apart.
#pragma once

#include "base/tensor.h"
#include "prepare/model_planner.h"

namespace sparkle::cli {

// How many items a run of the model takes: `wanted`, where the first axis of the input is open or just as long. Errors:
// bad_usage.
Result<int64_t> batch_of(const SessionInput& input, int64_t wanted);
// Whether the item called `name` may be one of `rows` rows. Errors: bad_input where it is not one row, [1, ...].
Status check_row(const HostTensor& item, const std::string& name, int64_t rows);
// Items side by side along the first axis, the last one again where there are fewer than `rows`. All have one shape, and passed
// check_row().
Result<HostTensor> put_together(const std::vector<HostTensor>& items, int64_t rows);
// Row `row` of `rows`. Errors: bad_input where the first axis is not of that length.
Result<HostTensor> row_of(const HostTensor& output, const std::string& name, int64_t row, int64_t rows);

}  // namespace sparkle::cli
