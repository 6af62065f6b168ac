// Exact rewrites of a model that need no device: what depends on constants alone, BatchNormalization behind a product, layout
// changes that undo each other. Each says what it did, a line per node.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "fix/document/document.h"

namespace sparkle::fix {

// Nodes whose inputs are constants become constants, unless that takes more than 16 MiB more. `bound`: the values by name.
std::vector<std::string> fold_constants(Document& doc, const std::map<std::string, HostTensor>& values);

// BatchNormalization that alone reads a Conv, ConvTranspose or Gemm with constant weights goes into these: computed in double,
// rounded once, as Sparkle's own plans do.
std::vector<std::string> fold_batch_normalization(Document& doc);

// Transposes behind each other become one, or none where they undo each other.
std::vector<std::string> merge_layouts(Document& doc);

}  // namespace sparkle::fix
