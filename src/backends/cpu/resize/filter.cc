// Antialiased resize along one axis: each output is a weighted sum of as many inputs as the filter is long. Inner axes are done
// side by side; along the innermost axis the sum runs over neighbours.
#include "backends/cpu/resize/filter.h"

#include <algorithm>
#include <memory>

#include "backends/cpu/copy/moves.h"
#include "families/resize/resize_taps.h"

namespace sparkle::cpu {
namespace {

class FilterKernel final : public CpuKernel {
 public:
  FilterKernel(const Stage& stage, const LoopSchedule& schedule, int axis, ResizeTaps taps)
      : schedule_(schedule),
        bytes_(stage.outputs[0].bytes()),
        taps_(std::move(taps)),
        extrapolation_(static_cast<float>(get<ResizeParams>(stage.params).extrapolation)) {
    const Dims &x = stage.inputs[0].shape, &y = stage.outputs[0].shape;
    in_ = x[axis], out_ = y[axis];
    for (int i = 0; i < axis; ++i) outer_ *= y[i];
    for (int i = axis + 1; i < y.size(); ++i) inner_ *= y[i];
    weight_.assign(taps_.weight.begin(), taps_.weight.end());
  }

  void run(const CpuLaunch& launch) const override {
    if (bytes_ == 0) return;
    const auto* x = reinterpret_cast<const float*>(launch.inputs[0]);
    auto* y = reinterpret_cast<float*>(launch.outputs[0]);
    const int64_t items = outer_ * out_;
    const int tasks = tasks_for(schedule_, *launch.executor, items, bytes_, sizeof(float));
    for_each_range(*launch.executor, items, tasks, [&](int64_t begin, int64_t end) {
      for (int64_t item = begin; item < end; ++item) filter(x + item / out_ * in_ * inner_, y + item * inner_, item % out_);
    });
  }

 private:
  // One output index: the row of its inner axes.
  void filter(const float* x, float* y, int64_t out) const {
    if (!taps_.outside.empty() && taps_.outside[static_cast<size_t>(out)]) {
      std::fill_n(y, inner_, extrapolation_);
      return;
    }
    const int64_t* index = taps_.index.data() + out * taps_.count;
    const float* weight = weight_.data() + out * taps_.count;
    if (inner_ == 1) {
      float sum = 0;
      for (int64_t k = 0; k < taps_.count; ++k) sum += weight[k] * x[index[k]];
      *y = sum;
      return;
    }
    std::fill_n(y, inner_, 0.0f);
    for (int64_t k = 0; k < taps_.count; ++k) {
      const float* row = x + index[k] * inner_;
      const float w = weight[k];
      for (int64_t i = 0; i < inner_; ++i) y[i] += w * row[i];
    }
  }

  LoopSchedule schedule_;
  int64_t bytes_;
  ResizeTaps taps_;
  std::vector<float> weight_;
  float extrapolation_;
  int64_t in_ = 1, out_ = 1, outer_ = 1, inner_ = 1;
};

}  // namespace

Result<CpuKernelPtr> make_resize_filter(const Stage& stage, const LoopSchedule& schedule) {
  const TensorDesc &x = stage.inputs[0], &y = stage.outputs[0];
  if (!is_row_major(x.shape, x.layout) || !is_row_major(y.shape, y.layout))
    return Error{Reason::layout_not_served, "A filtered resize takes row-major operands."};
  if (y.dtype != DType::f32)
    return Error{Reason::type_not_served, "A filtered resize supports f32, not " + std::string(name_of(y.dtype)) + "."};
  int axis = 0, resized = 0;
  ResizeTaps taps;
  for (int i = 0; i < y.shape.size(); ++i) {
    ResizeTaps here = resize_taps(get<ResizeParams>(stage.params), i, x.shape[i], y.shape[i]);
    if (i > 0 && here.identity) continue;
    resized += !here.identity;
    axis = i;
    taps = std::move(here);
  }
  if (resized > 1) return Error{Reason::filter_not_served, "A filtered resize takes one axis at a time."};
  return CpuKernelPtr(std::make_unique<FilterKernel>(stage, schedule, axis, std::move(taps)));
}

}  // namespace sparkle::cpu
