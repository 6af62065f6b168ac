#include "run/open_model.h"

#include "onnx/reader.h"

namespace sparkle {

Result<ModelFile> read_model(const std::string& path) {
  ModelFile model;
  SPARKLE_TRY(file, MappedFile::open(path, MappedFile::Pages::touched));
  if (is_compiled(file.bytes())) {
    SPARKLE_TRY(compiled, CompiledModel::open(path));
    model.compiled = std::move(compiled);
  } else {
    SPARKLE_TRY(graph, read_onnx(path));
    model.graph = std::move(graph);
  }
  return model;
}

Result<ModelFile> read_model_bytes(std::span<const std::byte> bytes, const std::string& name) {
  ModelFile model;
  if (is_compiled(bytes)) {
    SPARKLE_TRY(compiled, CompiledModel::from_memory(bytes, name));
    model.compiled = std::move(compiled);
  } else {
    SPARKLE_TRY(graph, read_onnx_bytes(bytes, "", name));
    model.graph = std::move(graph);
  }
  return model;
}

Result<std::unique_ptr<Session>> open_session(ModelFile model, std::shared_ptr<Backend> backend,
                                              const SessionOptions& options) {
  if (model.compiled) return Session::open(std::move(model.compiled), std::move(backend), options);
  return Session::open(std::move(model.graph), std::move(backend), options);
}

}  // namespace sparkle
