// Graph -> ONNX file (opset 21, IR version 10). Operators that are kept only by name (UnknownOp) are refused; what newer opsets
// want as inputs is written as constants where the Graph holds it in its parameters.
#pragma once

#include <string>

#include "graph/graph.h"

namespace sparkle {

Status write_onnx(const Graph& graph, const std::string& path);

// The file's bytes.
Result<std::string> onnx_bytes(const Graph& graph);

}  // namespace sparkle
