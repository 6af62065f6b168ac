#include "backends/self_tests/self_test_run.h"

#include "backends/self_tests/sample_run.h"
#include "families/gemm/gemm_tiles.h"

namespace sparkle {

Status try_stage(Backend& backend, const Stage& stage, const Schedule& schedule, uint32_t constants,
                 std::chrono::nanoseconds timeout) {
  SampleRun how;
  how.timeout = timeout;
  if (variant_of(schedule) == "half_sums") how.more = kShortSumsError;
  return run_sample(backend, stage, schedule, constants, how);
}

}  // namespace sparkle
