// The variant "plain" of every family: its reference loops in double precision. Serves any layout, no speed is promised.
#include "backends/cpu/cpu_kernel.h"

namespace sparkle::cpu {
namespace {

class PlainKernel final : public CpuKernel {
 public:
  explicit PlainKernel(const Stage& stage) : stage_(stage) {}
  void run(const CpuLaunch& launch) const override {
    std::vector<TensorView> inputs, outputs;
    // Launch addresses are those of element (0,...,0): the layout's offset is already in them.
    const auto add = [](std::vector<TensorView>& views, const TensorDesc& desc, std::byte* origin) {
      views.push_back({origin - desc.layout.offset * size_of(desc.dtype), desc});
    };
    for (size_t i = 0; i < stage_.inputs.size(); ++i) add(inputs, stage_.inputs[i], launch.inputs[i]);
    for (size_t i = 0; i < stage_.outputs.size(); ++i) add(outputs, stage_.outputs[i], launch.outputs[i]);
    info(stage_.family()).reference(stage_.params, inputs, outputs);
  }

 private:
  Stage stage_;
};

}  // namespace

Result<CpuKernelPtr> make_plain(const Stage& stage, const Schedule&, const Device&, uint32_t) {
  return CpuKernelPtr(std::make_unique<PlainKernel>(stage));
}

}  // namespace sparkle::cpu
