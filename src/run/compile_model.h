// What `sparkle compile` does: a model planned for given shapes on a device, its weights packed, both written to one file.
#pragma once

#include <memory>
#include <string>

#include "run/session.h"

namespace sparkle {

struct CompileSummary {
  std::shared_ptr<const Plan> plan;
  int64_t file_bytes = 0, weight_bytes = 0;
};

// `graph` as the reader gives it. The file is written beside `path` and then renamed, so that a session that has the file
// before mapped keeps it. Errors: operator_not_served where an input decides shapes by its value; file_unwritable; what
// planning says.
Result<CompileSummary> compile_model(Graph graph, Backend& backend, const SessionOptions& options,
                                     const std::vector<Dims>& shapes, const std::string& path);

}  // namespace sparkle
