// The sample family on the CPU: the variant "channels". The taps of a pixel are found once, then all its channels, which lie
// side by side, are summed in vectors.
#include <algorithm>

#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/sample/weighted_rows.h"
#include "families/loops/grain.h"
#include "families/sample/sample.h"

namespace sparkle::cpu {
namespace {

constexpr int kMostTaps = 64;  // cubic in three dimensions

class SampleKernel final : public CpuKernel {
 public:
  SampleKernel(const Stage& stage, int64_t grain, WeightedRowsFunction function)
      : params_(get<SampleParams>(stage.params)),
        x_(stage.inputs[0]),
        grid_(stage.inputs[1]),
        y_(stage.outputs[0]),
        spatial_(x_.shape.size() - 2),
        function_(function),
        grain_(grain) {
    pixels_ = y_.shape[0];
    for (int i = 0; i < spatial_; ++i) pixels_ *= y_.shape[2 + i];
    if (y_.shape[1] == 0) pixels_ = 0;
  }

  void run(const CpuLaunch& launch) const override {
    if (pixels_ == 0) return;
    const int64_t tasks = tasks_of(grain_, y_.elements(), pixels_, launch.executor->width());
    for_each_range(*launch.executor, pixels_, tasks, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) run_pixel(launch, i);
    });
  }

 private:
  void run_pixel(const CpuLaunch& launch, int64_t pixel) const {
    int64_t place[3] = {0, 0, 0}, grid_at = 0, y_at = 0;
    for (int i = spatial_ - 1; i >= 0; --i) {
      place[i] = pixel % y_.shape[2 + i], pixel /= y_.shape[2 + i];
      grid_at += place[i] * grid_.layout.strides[1 + i];
      y_at += place[i] * y_.layout.strides[2 + i];
    }
    grid_at += pixel * grid_.layout.strides[0];
    y_at += pixel * y_.layout.strides[0];
    const float* grid = reinterpret_cast<const float*>(launch.inputs[1]) + grid_at;

    // All combinations of the axes' taps, those outside left out.
    int64_t at[kMostTaps] = {pixel * x_.layout.strides[0]};
    float weight[kMostTaps] = {1};
    int taps = 1;
    for (int i = 0; i < spatial_; ++i) {
      const SampleTaps axis =
          sample_taps(params_, grid[(spatial_ - 1 - i) * grid_.layout.strides[spatial_ + 1]], x_.shape[2 + i]);
      int64_t next_at[kMostTaps];
      float next_weight[kMostTaps];
      int next = 0;
      for (int t = 0; t < taps; ++t)
        for (size_t k = 0; k < static_cast<size_t>(axis.count); ++k) {
          if (axis.index[k] < 0) continue;
          next_at[next] = at[t] + axis.index[k] * x_.layout.strides[2 + i];
          next_weight[next++] = weight[t] * axis.weight[k];
        }
      std::copy_n(next_at, next, at);
      std::copy_n(next_weight, next, weight);
      taps = next;
    }
    function_({reinterpret_cast<const float*>(launch.inputs[0]), at, weight, taps, y_.shape[1],
               reinterpret_cast<float*>(launch.outputs[0]) + y_at});
  }

  SampleParams params_;
  TensorDesc x_, grid_, y_;
  int spatial_;
  int64_t pixels_ = 0;
  WeightedRowsFunction function_;
  int64_t grain_;
};

}  // namespace

Result<CpuKernelPtr> make_sample(const Stage& stage, const Schedule& schedule, const Device&, uint32_t) {
  const LoopSchedule* loop = get_if<LoopSchedule>(&schedule);
  const WeightedRowsFunction function = loop ? weighted_rows(loop->unit) : nullptr;
  if (!function || loop->variant != "channels")
    return Error{Reason::backend_lacks_variant, "The CPU backend has no sample variant '" + variant_of(schedule) +
                                                    "' for the unit '" + unit_of(schedule) +
                                                    "'; choose 'channels' or 'plain'."};
  for (const TensorDesc& desc : {stage.inputs[0], stage.inputs[1], stage.outputs[0]})
    if (desc.dtype != DType::f32)
      return Error{Reason::type_not_served,
                   "The sampled channels are f32, not " + std::string(name_of(desc.dtype)) + "; choose the variant 'plain'."};
  const auto side_by_side = [](const TensorDesc& desc) { return desc.shape[1] <= 1 || desc.layout.strides[1] == 1; };
  const int rank = stage.inputs[0].shape.size();
  if (rank < 3 || rank > 5 || !side_by_side(stage.inputs[0]) || !side_by_side(stage.outputs[0]))
    return Error{Reason::layout_not_served,
                 "The sampled channels lie side by side, with one to three spatial axes; choose the variant 'plain'."};
  return CpuKernelPtr(std::make_unique<SampleKernel>(stage, loop->grain, function));
}

}  // namespace sparkle::cpu
