// NonMaxSuppression: tasks take whole classes of images; their rows are written one behind the other afterwards.
#include <algorithm>
#include <memory>
#include <vector>

#include "backends/cpu/copy/moves.h"
#include "backends/cpu/cpu_kernel.h"
#include "families/loops/grain.h"
#include "families/non_max/non_max.h"

namespace sparkle::cpu {
namespace {

class NonMaxKernel final : public CpuKernel {
 public:
  NonMaxKernel(const Stage& stage, int64_t grain)
      : params_(get<NonMaxParams>(stage.params)), grain_(grain), rows_(stage.outputs[0].shape[0]) {
    const Dims& scores = stage.inputs[1].shape;
    images_ = scores[0], classes_ = scores[1], count_ = scores[2];
  }

  void run(const CpuLaunch& launch) const override {
    const auto* four = reinterpret_cast<const float*>(launch.inputs[0]);
    const auto* scores = reinterpret_cast<const float*>(launch.inputs[1]);
    std::vector<Box> boxes(static_cast<size_t>(images_ * count_));
    for (size_t i = 0; i < boxes.size(); ++i) boxes[i] = box_of(params_, four + 4 * i);
    std::vector<std::vector<int64_t>> kept(static_cast<size_t>(images_ * classes_));
    const int64_t lists = images_ * classes_, tasks = lists == 0 ? 0 : tasks_of(grain_, lists, lists, launch.executor->width());
    for_each_range(*launch.executor, lists, tasks, [&](int64_t begin, int64_t end) {
      for (int64_t list = begin; list < end; ++list) {
        const auto first = static_cast<size_t>(list / classes_ * count_);
        kept[static_cast<size_t>(list)] =
            kept_boxes(params_, std::span(boxes).subspan(first, static_cast<size_t>(count_)), scores + list * count_);
      }
    });
    auto* row = reinterpret_cast<int64_t*>(launch.outputs[0]);
    auto* const end = row + 3 * rows_;
    for (int64_t task = 0; task < images_ * classes_; ++task)
      for (int64_t box : kept[static_cast<size_t>(task)]) {
        *row++ = task / classes_;
        *row++ = task % classes_;
        *row++ = box;
      }
    std::fill(row, end, -1);
  }

 private:
  NonMaxParams params_;
  int64_t grain_, rows_, images_ = 0, classes_ = 0, count_ = 0;
};

}  // namespace

Result<CpuKernelPtr> make_non_max(const Stage& stage, const Schedule& schedule, const Device& device, uint32_t constants) {
  if (variant_of(schedule) == "plain") return make_plain(stage, schedule, device, constants);
  const auto* loop = get_if<LoopSchedule>(&schedule);
  if (!loop || loop->variant != "classes")
    return Error{Reason::backend_lacks_variant, "The CPU backend has no non_max variant '" + variant_of(schedule) + "'."};
  bool rows = is_row_major(stage.outputs[0].shape, stage.outputs[0].layout);
  for (const TensorDesc& x : stage.inputs) rows = rows && is_row_major(x.shape, x.layout) && x.dtype == DType::f32;
  if (!rows) return Error{Reason::layout_not_served, "NonMaxSuppression takes row-major operands of f32."};
  if (stage.inputs[1].shape[0] * stage.inputs[1].shape[1] > (1 << 30))
    return Error{Reason::size_overflow, "NonMaxSuppression takes at most 2^30 images times classes."};
  return CpuKernelPtr(std::make_unique<NonMaxKernel>(stage, loop->grain));
}

}  // namespace sparkle::cpu
