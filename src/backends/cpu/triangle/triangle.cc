// Trilu: of each row a part is copied, the rest cleared.
#include <cstring>
#include <memory>

#include "backends/cpu/copy/moves.h"
#include "backends/cpu/cpu_kernel.h"
#include "families/triangle/triangle.h"

namespace sparkle::cpu {
namespace {

class TriangleKernel final : public CpuKernel {
 public:
  TriangleKernel(const Stage& stage, const LoopSchedule& schedule)
      : params_(get<TriangleParams>(stage.params)),
        schedule_(schedule),
        bytes_(stage.outputs[0].bytes()),
        element_(size_of(stage.outputs[0].dtype)) {
    const Dims& y = stage.outputs[0].shape;
    height_ = y[y.size() - 2], width_ = y[y.size() - 1];
  }

  void run(const CpuLaunch& launch) const override {
    if (bytes_ == 0) return;
    const int64_t rows = bytes_ / (width_ * element_);
    const int tasks = tasks_for(schedule_, *launch.executor, rows, bytes_, element_);
    for_each_range(*launch.executor, rows, tasks, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const KeptColumns kept = kept_columns(params_, row % height_, width_);
        const std::byte* x = launch.inputs[0] + row * width_ * element_;
        std::byte* y = launch.outputs[0] + row * width_ * element_;
        const auto bytes = [&](int64_t elements) { return static_cast<size_t>(elements * element_); };
        std::memset(y, 0, bytes(kept.begin));
        std::memcpy(y + bytes(kept.begin), x + bytes(kept.begin), bytes(kept.end - kept.begin));
        std::memset(y + bytes(kept.end), 0, bytes(width_ - kept.end));
      }
    });
  }

 private:
  TriangleParams params_;
  LoopSchedule schedule_;
  int64_t bytes_, element_, height_ = 1, width_ = 1;
};

}  // namespace

Result<CpuKernelPtr> make_triangle(const Stage& stage, const Schedule& schedule, const Device& device, uint32_t constants) {
  if (variant_of(schedule) == "plain") return make_plain(stage, schedule, device, constants);
  const auto* loop = get_if<LoopSchedule>(&schedule);
  if (!loop || loop->variant != "rows")
    return Error{Reason::backend_lacks_variant, "The CPU backend has no triangle variant '" + variant_of(schedule) + "'."};
  const TensorDesc &x = stage.inputs[0], &y = stage.outputs[0];
  if (!is_row_major(x.shape, x.layout) || !is_row_major(y.shape, y.layout))
    return Error{Reason::layout_not_served, "Trilu takes row-major operands."};
  return CpuKernelPtr(std::make_unique<TriangleKernel>(stage, *loop));
}

}  // namespace sparkle::cpu
