// Items of a model that differ, for those that time streams of them.
#pragma once

#include "run/session.h"

namespace sparkle {

constexpr size_t kBenchItems = 4;

// `inputs`, and three more of the same shapes with random numbers beside them; numbers and truth values may be sizes and
// places, and stay. Errors: out_of_memory.
Result<std::vector<std::vector<HostTensor>>> bench_items(const std::vector<HostTensor>& inputs, uint64_t seed);
// Internal: of an item run `how` ("alone") that has other outputs than on wiped memory.
Error wrong_item(const std::string& how, size_t item);

}  // namespace sparkle
