#include "run/open_model.h"

#include "onnx/reader.h"

namespace sparkle {
namespace {

FileStamp stamp_of(const std::string& path) {
  std::error_code none;  // reading says what is wrong
  return {path, std::filesystem::file_size(path, none), std::filesystem::last_write_time(path, none)};
}

Result<Graph> read_again(const FileStamp& wanted) {
  const auto changed = [&] {
    return Error{Reason::file_unreadable,
                 "'" + wanted.path + "' is no longer the file that the session was opened from; open a new session."};
  };
  if (stamp_of(wanted.path) != wanted) return changed();
  SPARKLE_TRY(graph, read_onnx(wanted.path));
  if (stamp_of(wanted.path) != wanted) return changed();
  return graph;
}

}  // namespace

Result<ModelFile> read_model(const std::string& path) {
  ModelFile model;
  SPARKLE_TRY(file, MappedFile::open(path, MappedFile::Pages::touched));
  if (is_compiled(file.bytes())) {
    SPARKLE_TRY(compiled, CompiledModel::open(path));
    model.compiled = std::move(compiled);
  } else {
    std::error_code none;
    model.onnx = stamp_of(std::filesystem::absolute(path, none).string());
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
  GraphSource again;
  if (!model.onnx.path.empty()) again = [file = std::move(model.onnx)] { return read_again(file); };
  return Session::open(std::move(model.graph), std::move(backend), options, std::move(again));
}

}  // namespace sparkle
