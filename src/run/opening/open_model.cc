#include "run/opening/open_model.h"

#include "base/log.h"
#include "graph/batch/rebatch.h"
#include "onnx/reader.h"
#include "plan/lower/supported.h"
#include "run/opening/foreign_model.h"
#include "run/opening/open_backend.h"

namespace sparkle {
namespace {

// Whether the model has one input, which begins with an axis of 1.
bool takes_one(const Graph& graph) {
  if (graph.inputs.size() != 1) return false;
  const GraphTensor& input = graph.tensor(graph.inputs[0]);
  return input.rank_known && !input.shape.empty() && input.shape[0] == 1;
}

}  // namespace

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

Result<ModelFile> read_model(const std::string& path, ExternalData external) {
  ModelFile model;
  if (auto wrong = no_model_file(path)) return *std::move(wrong);
  SPARKLE_TRY(file, MappedFile::open(path, MappedFile::Pages::touched));
  if (is_compiled(file.bytes())) {
    SPARKLE_TRY(compiled, CompiledModel::open(path));
    model.compiled = std::move(compiled);
  } else {
    std::error_code none;
    model.onnx = stamp_of(std::filesystem::absolute(path, none).string());
    if (auto foreign = foreign_model(file.bytes(), path)) return *std::move(foreign);
    auto graph = read_onnx(path, external);
    if (!graph.ok() && graph.error().reason == Reason::bad_format)
      if (auto foreign = foreign_ending(path)) return *std::move(foreign);
    if (!graph.ok()) return graph.take_error();
    SPARKLE_CHECK(check_supported(*graph, path));
    model.graph = std::move(*graph);
  }
  return model;
}

Status check_onnx_file(const std::string& path) {
  if (auto wrong = no_model_file(path)) return *std::move(wrong);
  SPARKLE_TRY(file, MappedFile::open(path, MappedFile::Pages::touched));
  if (is_compiled(file.bytes()))
    return Error{Reason::bad_usage,
                 "'" + path + "' is a compiled model, made for one machine; give the ONNX file it was made of."};
  if (auto foreign = foreign_model(file.bytes(), path)) return *std::move(foreign);
  return ok();
}

Result<Graph> read_onnx_model(const std::string& path, ExternalData external) {
  SPARKLE_CHECK(check_onnx_file(path));
  SPARKLE_TRY(model, read_model(path, external));
  return std::move(model.graph);
}

Result<ModelFile> read_model_bytes(std::span<const std::byte> bytes, const std::string& name) {
  ModelFile model;
  if (is_compiled(bytes)) {
    SPARKLE_TRY(compiled, CompiledModel::from_memory(bytes, name));
    model.compiled = std::move(compiled);
  } else {
    if (auto foreign = foreign_model(bytes, name)) return *std::move(foreign);
    SPARKLE_TRY(graph, read_onnx_bytes(bytes, "", name));
    SPARKLE_CHECK(check_supported(graph, name));
    model.graph = std::move(graph);
  }
  return model;
}

Result<std::unique_ptr<Session>> open_session(ModelFile model, std::shared_ptr<Backend> backend, const SessionOptions& asked,
                                              int64_t rows) {
  SessionOptions options = asked;
  if (!options.open_host) options.open_host = open_host;
  if (model.compiled) return Session::open(std::move(model.compiled), std::move(backend), options);
  const bool changed = rows > 1 && takes_one(model.graph);
  if (changed) {
    SPARKLE_TRY(many, rebatch(model.graph, rows));
    model.graph = std::move(many);
    log(LogLevel::info, "The model, made for one item a run, takes " + std::to_string(rows) + ", each by itself.");
  }
  GraphSource again;
  if (!model.onnx.path.empty())
    again = [file = std::move(model.onnx), rows, changed]() -> Result<Graph> {
      SPARKLE_TRY(graph, read_again(file));
      return changed ? rebatch(graph, rows) : std::move(graph);
    };
  return Session::open(std::move(model.graph), std::move(backend), options, std::move(again));
}

}  // namespace sparkle
