// The operators on sequences of tensors, and how tensors are stacked and cut into slices.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "run/parts/value.h"

namespace sparkle {

// The output of a sequence operator; absent inputs are not `given`. Errors: bad_input, bad_shape naming the node.
Result<PartValue> sequence_value(const Op& op, const std::vector<PartValue>& inputs);

// All of one type and rank, side by side along an axis; with `new_axis` along one that they do not have yet. `what` begins the
// sentences of errors.
Result<HostTensor> joined(const std::vector<HostTensor>& parts, int64_t axis, bool new_axis, const std::string& what);
// `count` slices from number `first` along an axis; `drop`: the axis goes, for one slice.
Result<HostTensor> sliced(const HostTensor& x, int axis, int64_t first, int64_t count, bool drop, const std::string& what);

// An axis of a tensor of this rank, negative ones from the end.
Result<int> checked_axis(int64_t axis, int rank, const std::string& what);

}  // namespace sparkle
