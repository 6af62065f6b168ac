// Graph -> ONNX file (opset 21, IR version 10). Operators that are kept only by name (UnknownOp) are refused; what newer opsets
// want as inputs is written as constants where the Graph holds it in its parameters.
#pragma once

#include <string>

#include "graph/graph.h"

namespace sparkle {

// Weights inside of the file, which holds 2 GiB at most, or in a file PATH.data beside it.
enum class Weights : uint8_t { inside, beside };
Status write_onnx(const Graph& graph, const std::string& path, Weights weights = Weights::inside);

// The file's bytes, weights inside.
Result<std::string> onnx_bytes(const Graph& graph);

}  // namespace sparkle
