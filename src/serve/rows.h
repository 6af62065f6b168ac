// Requests as rows of one run: put side by side along the first axis, taken apart again, compared.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "base/tensor.h"

namespace sparkle::serve {

// Equal types, and equal shapes but for the first axis.
bool same_but_rows(const std::vector<HostTensor>& a, const std::vector<HostTensor>& b);
// The length of the first axis where all tensors have the same, of at least 1; else 0.
int64_t rows_of(const std::vector<HostTensor>& tensors);

// All tensors with the same index side by side. Errors: out_of_memory, size_overflow.
Result<std::vector<HostTensor>> side_by_side(std::span<const std::vector<HostTensor>* const> parts);
// The rows from `begin` on, in the memory of the whole.
std::vector<HostTensor> rows_from(const std::vector<HostTensor>& whole, int64_t begin, int64_t rows);

// The same elements from the last to the first.
HostTensor turned_round(const HostTensor& tensor);
// Whether two runs of one model on the same values came to the same: floats within what other kernels' rounding makes, anything
// else to the bit.
bool agree(const std::vector<HostTensor>& a, const std::vector<HostTensor>& b);

}  // namespace sparkle::serve
