// What a backend may be able to do beside running programs: tell when each task of a run went through which of the host's
// threads. One that can is a TaskTrace too. It costs nothing where it is not asked for: another executor stands before the
// usual one.
#pragma once

#include "backends/backend.h"
#include "base/system/tracing_executor.h"

namespace sparkle {

class TaskTrace {
 public:
  virtual ~TaskTrace() = default;
  // Backend::submit(), and `tasks` in the order in which they began, `left_out` of them missing at the end; complete once the
  // work is.
  virtual Result<Token> submit_traced(const Program& program, std::span<Buffer* const> slots, const SubmitOptions& options,
                                      std::vector<TaskSpan>& tasks, int64_t& left_out) = 0;
};

}  // namespace sparkle
