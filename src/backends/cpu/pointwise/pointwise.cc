// The pointwise family on the CPU: the variant "strips".
#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/pointwise/pointwise_loop.h"

namespace sparkle::cpu {
namespace {

class PointwiseKernel final : public CpuKernel {
 public:
  explicit PointwiseKernel(PointwiseLoop loop) : loop_(std::move(loop)) {}
  void run(const CpuLaunch& launch) const override { loop_.run(launch.inputs, launch.outputs[0], *launch.executor); }

 private:
  PointwiseLoop loop_;
};

}  // namespace

Result<CpuKernelPtr> make_pointwise(const Stage& stage, const Schedule& schedule, const Device&, uint32_t) {
  const LoopSchedule* loop_schedule = std::get_if<LoopSchedule>(&schedule);
  if (!loop_schedule || loop_schedule->variant != "strips") {
    return Error{Reason::backend_lacks_variant,
                 "The CPU backend has no pointwise variant '" + variant_of(schedule) + "'; choose 'strips' or 'plain'."};
  }
  SPARKLE_TRY(loop, PointwiseLoop::make(std::get<PointwiseParams>(stage.params), stage.inputs, stage.outputs[0],
                                        loop_schedule->unit, loop_schedule->grain));
  return CpuKernelPtr(std::make_unique<PointwiseKernel>(std::move(loop)));
}

}  // namespace sparkle::cpu
