// The operators whose results' shapes the data tells, on values: what the host computes between parts, and what folding does
// where the values are constants.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace sparkle {

// True for NonZero, Compress, Unique, RoiAlign, the operators on bits and Det.
bool makes_tensors(const HostOp& op);

// Their outputs; inputs that are absent are nullptr. Errors: bad_shape, bad_input, type_not_served naming the node.
Result<std::vector<HostTensor>> host_values(const Op& op, const std::vector<const HostTensor*>& inputs);

// A tensor of the host; size_overflow where it cannot be had. `what` begins the sentence.
Result<HostTensor> new_tensor(DType type, const Dims& shape, const std::string& what);

}  // namespace sparkle
