// A model by its file, whatever kind of file it is: ONNX, or compiled.
#pragma once

#include <memory>
#include <string>

#include "run/session.h"

namespace sparkle {

struct ModelFile {
  Graph graph;                                    // of an ONNX file
  std::shared_ptr<const CompiledModel> compiled;  // else

  const Graph& contents() const { return compiled ? compiled->graph() : graph; }
};

// Errors: file_unreadable, bad_format, and what the reader says of a model.
Result<ModelFile> read_model(const std::string& path);
// `name`: what errors call the model. External data is not read.
Result<ModelFile> read_model_bytes(std::span<const std::byte> bytes, const std::string& name);

Result<std::unique_ptr<Session>> open_session(ModelFile model, std::shared_ptr<Backend> backend, const SessionOptions& options);

}  // namespace sparkle
