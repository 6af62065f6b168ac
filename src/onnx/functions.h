// Functions that a model defines for itself: their nodes stand in the place of each call, before anything else is read.
#pragma once

#include <onnx.pb.h>

#include <string>
#include <unordered_map>
#include <unordered_set>

#include "base/result.h"

namespace sparkle {

// The opset that a node which came from a function has; nodes of the model itself are not listed.
using FunctionOpsets = std::unordered_map<const ::onnx::NodeProto*, int64_t>;

// Puts the nodes of functions in the place of all calls, in graphs within graphs too. Names inside become those of the call,
// attributes by reference those of the call or their defaults. Errors: bad_model where a function calls itself, size_overflow
// where calls of calls come to more than 131,072 nodes.
Result<FunctionOpsets> inline_functions(::onnx::ModelProto& model, const std::string& where);

// The names that a graph in an attribute reads of the graphs around it.
void names_from_outside(const ::onnx::GraphProto& graph, std::unordered_set<std::string>& names);

}  // namespace sparkle
