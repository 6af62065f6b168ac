// The rotary family on the CPU: the variant "rows", one row of pairs after the other.
#include "backends/cpu/rotary/rotary_rows.h"
#include "families/rotary/rotary.h"

#include <algorithm>

#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/loop_nest.h"
#include "families/loops/grain.h"

namespace sparkle::cpu {
namespace {

class RotaryKernel final : public CpuKernel {
 public:
  RotaryKernel(const Stage& stage, RotaryFunction function, int64_t grain) : function_(function), grain_(grain) {
    row_.half = stage.inputs[1].shape.back();
    row_.width = stage.inputs[0].shape.back();
    row_.interleaved = get<RotaryParams>(stage.params).interleaved;
    Dims shape = stage.inputs[0].shape;
    shape.erase(shape.size() - 1);
    std::vector<Dims> strides;
    for (const TensorDesc& desc : {stage.inputs[0], stage.inputs[1], stage.inputs[2], stage.outputs[0]}) {
      strides.push_back(desc.layout.strides);
      strides.back().erase(shape.size());
    }
    rows_ = shape.product();
    if (rows_ > 0) outer_ = make_nest(shape, strides, 3);
  }

  void run(const CpuLaunch& launch) const override {
    if (rows_ == 0) return;
    const int64_t tasks = tasks_of(grain_, rows_ * row_.width, rows_, launch.executor->width());
    for_each_range(*launch.executor, rows_, tasks, [&](int64_t begin, int64_t end) {
      RotaryRow row = row_;
      const auto input = [&](size_t i, int64_t at) {
        return reinterpret_cast<const float*>(launch.inputs[i]) + outer_.offset(i, at, outer_.rank());
      };
      for (int64_t at = begin; at < end; ++at) {
        row.x = input(0, at), row.cosine = input(1, at), row.sine = input(2, at);
        row.y = reinterpret_cast<float*>(launch.outputs[0]) + outer_.offset(3, at, outer_.rank());
        function_(row);
      }
    });
  }

 private:
  RotaryFunction function_;
  int64_t grain_;
  RotaryRow row_;
  LoopNest outer_;  // x, cosine, sine, y
  int64_t rows_ = 0;
};

}  // namespace

Result<CpuKernelPtr> make_rotary(const Stage& stage, const Schedule& schedule, const Device&, uint32_t) {
  const LoopSchedule* loop = get_if<LoopSchedule>(&schedule);
  const RotaryFunction function = loop ? rotary_function(loop->unit) : nullptr;
  if (!function || loop->variant != "rows")
    return Error{Reason::backend_lacks_variant, "The CPU backend has no rotary variant '" + variant_of(schedule) +
                                                    "' for the unit '" + unit_of(schedule) + "'; choose 'rows' or 'plain'."};
  for (const TensorDesc& desc : {stage.inputs[0], stage.inputs[1], stage.inputs[2], stage.outputs[0]}) {
    if (desc.dtype != DType::f32)
      return Error{Reason::type_not_served,
                   "The rotary rows take f32, not " + std::string(name_of(desc.dtype)) + "; choose the variant 'plain'."};
    if (desc.shape.back() > 1 && desc.layout.strides.back() != 1)
      return Error{Reason::layout_not_served, "The rotary rows take contiguous rows; choose the variant 'plain'."};
  }
  return CpuKernelPtr(std::make_unique<RotaryKernel>(stage, function, loop->grain));
}

}  // namespace sparkle::cpu
