// ONNX files -> Graph. Operators and attribute forms that are not supported become UnknownOp with the reason; a file that
// contradicts itself is an Error naming file, node or tensor. Opsets 1 to kNewestOpset of the standard operators.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "graph/graph.h"

namespace sparkle {

inline constexpr int64_t kNewestOpset = 28;

// How bytes in files beside the model come: copied, or left where they are in a map of the file until somebody reads them. Such
// a file must stay as it is as long as the graph is used: for what looks at sizes and ends.
enum class ExternalData : uint8_t { copied, mapped };

Result<Graph> read_onnx(const std::string& path, ExternalData external = ExternalData::copied);

// The same from memory. `folder`: where external data lies (empty: none is read). `name`: what errors call the model.
Result<Graph> read_onnx_bytes(std::span<const std::byte> bytes, const std::string& folder, const std::string& name,
                              ExternalData external = ExternalData::copied);

}  // namespace sparkle
