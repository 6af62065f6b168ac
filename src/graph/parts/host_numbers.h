// Operators on bits, and determinants: rare enough that the host computes them between parts, exactly, for every device.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace sparkle {

// True for BitwiseAnd, BitwiseOr, BitwiseXor, BitShift and BitCast.
bool computes_bits(const HostOp& op);

// Their results; inputs are given. Errors: bad_shape, type_not_served, size_overflow naming the node.
Result<std::vector<HostTensor>> host_bits(const Op& op, const std::vector<const HostTensor*>& inputs);

// Of each matrix [..., n, n], in double precision. Errors: bad_shape, type_not_served naming the node.
Result<std::vector<HostTensor>> host_determinants(const Op& op, const HostTensor& x);

}  // namespace sparkle
