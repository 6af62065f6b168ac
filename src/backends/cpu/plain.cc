// The variant "plain" of every family: its reference loops. Serves any layout and type, no speed is promised; threads share the
// stage along one axis of its output where the family allows it.
#include <algorithm>

#include "backends/cpu/cpu_kernel.h"
#include "base/system/denormals.h"
#include "families/loops/grain.h"
#include "families/registry.h"
#include "families/loops/split.h"

namespace sparkle::cpu {
namespace {

class PlainKernel final : public CpuKernel {
 public:
  PlainKernel(const Stage& stage, int64_t grain) : stage_(stage), grain_(grain), split_(split_axes(stage)) {
    for (const TensorDesc& desc : stage.outputs) double_ |= desc.dtype == DType::f64;
  }
  void run(const CpuLaunch& launch) const override {
    std::vector<TensorView> inputs, outputs;
    // Launch addresses are those of element (0,...,0): the layout's offset is already in them.
    const auto add = [](std::vector<TensorView>& views, const TensorDesc& desc, std::byte* origin) {
      views.push_back({origin - desc.layout.offset * size_of(desc.dtype), desc});
    };
    for (size_t i = 0; i < stage_.inputs.size(); ++i) add(inputs, stage_.inputs[i], launch.inputs[i]);
    for (size_t i = 0; i < stage_.outputs.size(); ++i) add(outputs, stage_.outputs[i], launch.outputs[i]);
    const ScopedKeepDenormals keep(double_);
    const auto reference = info(stage_.family()).reference;
    const int64_t elements = stage_.outputs[0].elements();
    const int64_t tasks = tasks_of(grain_, elements, split_.size, launch.executor->width());
    if (tasks <= 1) return reference(stage_.params, inputs, outputs);
    for_each_range(*launch.executor, split_.size, tasks, [&](int64_t begin, int64_t end) {
      const ScopedKeepDenormals keep_here(double_);
      std::vector<TensorView> part_inputs, part_outputs;
      for (size_t i = 0; i < inputs.size(); ++i) part_inputs.push_back(part_of(inputs[i], split_.inputs[i], begin, end));
      for (size_t i = 0; i < outputs.size(); ++i) part_outputs.push_back(part_of(outputs[i], split_.outputs[i], begin, end));
      reference(stage_.params, part_inputs, part_outputs);
    });
  }

 private:
  Stage stage_;
  int64_t grain_;
  SplitAxes split_;
  bool double_ = false;  // makes f64
};

}  // namespace

Result<CpuKernelPtr> make_plain(const Stage& stage, const Schedule& schedule, const Device&, uint32_t) {
  const auto* loop = get_if<LoopSchedule>(&schedule);
  return CpuKernelPtr(std::make_unique<PlainKernel>(stage, loop ? loop->grain : 0));
}

}  // namespace sparkle::cpu
