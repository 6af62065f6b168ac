// GatherElements: lines along the last axis, one element after the other. Each index is clamped to the axis.
#include "backends/cpu/gather/elements.h"

#include <memory>

#include "families/gather/gather.h"
#include "families/values/indices.h"

namespace sparkle::cpu {
namespace {

// A line of y: `n` elements, strides in elements; `moved` is x's stride along the axis of the indices.
struct Line {
  int64_t n, x, y, index, moved, size;
};

template <class Index, class T>
void gather_line(const Line& line, const std::byte* x, const std::byte* index, std::byte* y) {
  const T* from = reinterpret_cast<const T*>(x);
  const Index* places = reinterpret_cast<const Index*>(index);
  T* to = reinterpret_cast<T*>(y);
  for (int64_t i = 0; i < line.n; ++i)
    to[i * line.y] = from[i * line.x + clamped_index(places[i * line.index], line.size) * line.moved];
}

template <class Index>
auto line_function(int64_t bytes) {
  return bytes == 1   ? gather_line<Index, uint8_t>
         : bytes == 2 ? gather_line<Index, uint16_t>
         : bytes == 4 ? gather_line<Index, uint32_t>
                      : gather_line<Index, uint64_t>;
}

class ElementsKernel final : public CpuKernel {
 public:
  ElementsKernel(const Stage& stage, const LoopSchedule& schedule)
      : schedule_(schedule), element_(size_of(stage.outputs[0].dtype)), bytes_(stage.outputs[0].bytes()) {
    const TensorDesc &x = stage.inputs[0], &indices = stage.inputs[1], &y = stage.outputs[0];
    const int axis = get<GatherParams>(stage.params).axis, last = y.shape.size() - 1;
    const int64_t wide = size_of(indices.dtype);
    for (int i = 0; i < last; ++i) {
      // One walk for x and y, one for the indices; x does not move with the axis that the indices are for.
      outer_.push_back({y.shape[i], i == axis ? 0 : x.layout.strides[i] * element_, y.layout.strides[i] * element_});
      places_.push_back({y.shape[i], indices.layout.strides[i] * wide, 0});
    }
    line_ = {y.shape[last],          axis == last ? 0 : x.layout.strides[last],
             y.layout.strides[last], indices.layout.strides[last],
             x.layout.strides[axis], x.shape[axis]};
    run_line_ = indices.dtype == DType::i64 ? line_function<int64_t>(element_) : line_function<int32_t>(element_);
  }

  void run(const CpuLaunch& launch) const override {
    if (bytes_ == 0 || line_.size == 0) return;
    const int64_t lines = count_of(outer_);
    const int tasks = tasks_for(schedule_, *launch.executor, lines, bytes_, element_);
    for_each_range(*launch.executor, lines, tasks, [&](int64_t begin, int64_t end) {
      Walk outer(outer_, begin), place(places_, begin);
      for (int64_t i = begin; i < end; ++i, outer.next(), place.next())
        run_line_(line_, launch.inputs[0] + outer.x, launch.inputs[1] + place.x, launch.outputs[0] + outer.y);
    });
  }

 private:
  LoopSchedule schedule_;
  int64_t element_, bytes_;
  std::vector<MoveAxis> outer_, places_;
  Line line_{};
  void (*run_line_)(const Line&, const std::byte*, const std::byte*, std::byte*) = nullptr;
};

}  // namespace

Result<CpuKernelPtr> make_gather_elements(const Stage& stage, const LoopSchedule& schedule) {
  return CpuKernelPtr(std::make_unique<ElementsKernel>(stage, schedule));
}

}  // namespace sparkle::cpu
