// The order in which nodes of a file can run: the file's own where it is topological, as the specification wants.
#pragma once

#include <vector>

namespace sparkle {

// `needs[i]`: the nodes whose results node i reads. Returns all nodes, those of a cycle left out; of the nodes that could
// come next the first one in the file does.
std::vector<int> topological_order(const std::vector<std::vector<int>>& needs);

}  // namespace sparkle
