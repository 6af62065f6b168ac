// The pointwise family on the CPU: the variants "strips" (computed in f32) and "typed" (in f64 and integers).
#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/pointwise/pointwise_loop.h"
#include "backends/cpu/pointwise/typed_loop.h"
#include "families/pointwise/pointwise.h"

namespace sparkle::cpu {
namespace {

template <class Loop>
class PointwiseKernel final : public CpuKernel {
 public:
  explicit PointwiseKernel(Loop loop) : loop_(std::move(loop)) {}
  void run(const CpuLaunch& launch) const override { loop_.run(launch.inputs, launch.outputs[0], *launch.executor); }

 private:
  Loop loop_;
};

}  // namespace

Result<CpuKernelPtr> make_pointwise(const Stage& stage, const Schedule& schedule, const Device&, uint32_t) {
  const LoopSchedule* loop_schedule = get_if<LoopSchedule>(&schedule);
  if (loop_schedule && loop_schedule->variant == "typed") {
    SPARKLE_TRY(loop,
                TypedLoop::make(get<PointwiseParams>(stage.params), stage.inputs, stage.outputs[0], loop_schedule->grain));
    return CpuKernelPtr(std::make_unique<PointwiseKernel<TypedLoop>>(std::move(loop)));
  }
  if (!loop_schedule || loop_schedule->variant != "strips") {
    return Error{Reason::backend_lacks_variant, "The CPU backend has no pointwise variant '" + variant_of(schedule) +
                                                    "'; choose 'strips', 'typed' or 'plain'."};
  }
  SPARKLE_TRY(loop, PointwiseLoop::make(get<PointwiseParams>(stage.params), stage.inputs, stage.outputs[0], loop_schedule->unit,
                                        loop_schedule->grain));
  return CpuKernelPtr(std::make_unique<PointwiseKernel<PointwiseLoop>>(std::move(loop)));
}

}  // namespace sparkle::cpu
