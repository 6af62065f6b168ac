// What `sparkle compile` does: a prepared plan of a model, its weights packed, both written to one file.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "backends/backend.h"
#include "graph/graph.h"
#include "prepare/session_options.h"

namespace sparkle {

struct CompileSummary {
  std::shared_ptr<const Plan> plan;
  int64_t file_bytes = 0, weight_bytes = 0;
};

// `graph` as the reader gives it. The file is written beside `path` and then renamed, so that a session that has the file
// before mapped keeps it. Errors: operator_not_served where an input decides shapes by its value; file_unwritable; what
// planning says, and what `accept` says of the plan before a file is begun.
Result<CompileSummary> compile_model(Graph graph, std::shared_ptr<Backend> backend, const SessionOptions& options,
                                     const std::vector<Dims>& shapes, const std::string& path,
                                     const std::function<Status(const Plan&)>& accept = {});

}  // namespace sparkle
