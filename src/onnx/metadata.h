// What a model file says of itself beside its graph: metadata_props of ONNX, found without reading the graph.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>

namespace sparkle {

// Keys and values; empty where the file has none, or is no ONNX file.
std::map<std::string, std::string> read_metadata(const std::string& path);
std::map<std::string, std::string> read_metadata_bytes(std::span<const std::byte> bytes);

// Class names that exporters keep there: "{0: 'person', 1: 'bicycle'}" of Ultralytics under "names". Empty where there are
// none.
std::map<int, std::string> class_names(const std::map<std::string, std::string>& metadata);

}  // namespace sparkle
