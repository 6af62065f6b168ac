// A model by its file, whatever kind of file it is: ONNX, or compiled.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "onnx/reader.h"
#include "run/session.h"

namespace sparkle {

// A file as it was at a time: whether it has been written since.
struct FileStamp {
  std::string path;
  uintmax_t bytes = 0;
  std::filesystem::file_time_type written;

  bool operator==(const FileStamp&) const = default;
};
// The file as it lies there now.
FileStamp stamp_of(const std::string& path);

struct ModelFile {
  Graph graph;                                    // of an ONNX file
  FileStamp onnx;                                 // that file; no path where it came from memory
  std::shared_ptr<const CompiledModel> compiled;  // else

  const Graph& contents() const { return compiled ? compiled->graph() : graph; }
};

// Errors: file_unreadable, bad_format, what the reader says of a model, and check_supported() of all that cannot run.
Result<ModelFile> read_model(const std::string& path, ExternalData external = ExternalData::copied);
// Whether a file is none of another kind: bad_usage for a compiled model, bad_format for formats of others. One that is cut
// short passes.
Status check_onnx_file(const std::string& path);
// An ONNX file alone. Errors: the same, and bad_usage for a compiled model.
Result<Graph> read_onnx_model(const std::string& path, ExternalData external = ExternalData::copied);
// `name`: what errors call the model. External data is not read.
Result<ModelFile> read_model_bytes(std::span<const std::byte> bytes, const std::string& name);

// The same file once more. Errors: file_unreadable where it has been written since; those of reading.
Result<Graph> read_again(const FileStamp& file);

// Sessions of an ONNX file read it again where Session::move_to needs it. Errors then: file_unreadable where it has been
// written since it was read first.
// `rows`: the items of a run; a model whose one input begins with an axis of 1 for them is given so many
// (graph/batch/rebatch.h), others stay as they are. Errors then: bad_usage naming what does not keep items apart.
Result<std::unique_ptr<Session>> open_session(ModelFile model, std::shared_ptr<Backend> backend, const SessionOptions& options,
                                              int64_t rows = 1);

}  // namespace sparkle
