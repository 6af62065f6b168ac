#include "backends/vulkan/trials/trial_run.h"

#include "backends/sample_run.h"
#include "families/gemm/gemm_tiles.h"

namespace sparkle::vulkan {

Status try_stage(VulkanBackend& backend, const Stage& stage, const Schedule& schedule, uint32_t constants,
                 std::chrono::nanoseconds timeout) {
  SampleRun how;
  how.timeout = timeout;
  if (variant_of(schedule) == "half_sums") how.more = kShortSumsError;
  how.keep_until = [&](Token token, std::vector<std::shared_ptr<void>> kept) { backend.keep_until(token, std::move(kept)); };
  return run_sample(backend, stage, schedule, constants, how);
}

}  // namespace sparkle::vulkan
