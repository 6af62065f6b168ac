// The softmax family on the CPU: the variant "rows". Rows of neighbours directly, strided rows many at a time where another
// axis is contiguous, anything else through a row of its own.
#include <algorithm>

#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/loop_nest.h"
#include "backends/cpu/softmax/softmax_rows.h"
#include "families/loops/grain.h"
#include "families/softmax/softmax.h"

namespace sparkle::cpu {
namespace {

class SoftmaxKernel final : public CpuKernel {
 public:
  SoftmaxKernel(const SoftmaxParams& params, const TensorDesc& x, const TensorDesc& y, int64_t grain,
                SoftmaxFunctions functions)
      : logarithm_(params.logarithm), functions_(functions), grain_(grain), elements_(x.elements()) {
    Dims row_shape, row_x, row_y, outer_shape, outer_x, outer_y;
    for (int i = 0; i < x.shape.size(); ++i) {
      const bool inside = i >= params.first_axis && i <= params.last_axis;
      (inside ? row_shape : outer_shape).push_back(x.shape[i]);
      (inside ? row_x : outer_x).push_back(x.layout.strides[i]);
      (inside ? row_y : outer_y).push_back(y.layout.strides[i]);
    }
    empty_ = x.shape.product() == 0;
    if (empty_) return;
    const Dims row_strides[] = {row_x, row_y}, outer_strides[] = {outer_x, outer_y};
    row_ = make_nest(row_shape, row_strides, 1);
    outer_ = make_nest(outer_shape, outer_strides, 1);
    count_ = row_shape.product();
    const int r = row_.rank() - 1, o = outer_.rank() - 1;
    if (row_.rank() == 1 && (count_ == 1 || (row_.strides[0][0] == 1 && row_.strides[1][0] == 1))) {
      access_ = Access::rows;
    } else if (row_.rank() == 1 && outer_.size[o] > 1 && outer_.strides[0][o] == 1 && outer_.strides[1][o] == 1) {
      access_ = Access::columns;
    } else {
      access_ = Access::moved;
    }
    x_stride_ = row_.strides[0][r], y_stride_ = row_.strides[1][r];
    block_ = access_ == Access::columns ? std::min<int64_t>(outer_.size[o], kSoftmaxColumns) : 1;
    blocks_ = access_ == Access::columns ? (outer_.size[o] + block_ - 1) / block_ : 1;
    items_ = outer_shape.product();
    if (access_ == Access::columns) items_ = items_ / outer_.size[o] * blocks_;
  }

  // A row per task where rows are moved.
  int64_t workspace_bytes() const override { return access_ == Access::moved && !empty_ ? 4 * count_ * kMostTasks : 0; }

  void run(const CpuLaunch& launch) const override {
    if (empty_) return;
    const float* x = reinterpret_cast<const float*>(launch.inputs[0]);
    float* y = reinterpret_cast<float*>(launch.outputs[0]);
    const int64_t items = std::min(items_, kMostTasks);
    const auto tasks = static_cast<int>(tasks_of(grain_, elements_, items, launch.executor->width()));
    parallel_for(*launch.executor, tasks, [&](int task, int) {
      float* scratch = reinterpret_cast<float*>(launch.workspace) + task * count_;
      const auto [begin, end] = task_range(items_, tasks, task);
      if (access_ == Access::rows) return run_rows(x, y, begin, end);
      for (int64_t item = begin; item < end; ++item) run_item(x, y, item, scratch);
    });
  }

 private:
  enum class Access : uint8_t { rows, columns, moved };
  static constexpr int64_t kMostTasks = 64;

  // Rows that follow each other along the innermost axis outside of them.
  void run_rows(const float* x, float* y, int64_t begin, int64_t end) const {
    const int inner = outer_.rank() - 1;
    while (begin < end) {
      const int64_t rows = std::min(outer_.size[inner] - begin % outer_.size[inner], end - begin);
      functions_.rows(x + outer_.offset(0, begin, outer_.rank()), outer_.strides[0][inner],
                      y + outer_.offset(1, begin, outer_.rank()), outer_.strides[1][inner], static_cast<size_t>(count_),
                      static_cast<size_t>(rows), logarithm_);
      begin += rows;
    }
  }

  void run_item(const float* x, float* y, int64_t item, float* scratch) const {
    const auto count = static_cast<size_t>(count_);
    if (access_ == Access::columns) {
      const int inner = outer_.rank() - 1;
      const int64_t outer = item / blocks_, column = item % blocks_ * block_;
      const int64_t columns = std::min(block_, outer_.size[inner] - column);
      functions_.columns(x + outer_.offset(0, outer, inner) + column, x_stride_, y + outer_.offset(1, outer, inner) + column,
                         y_stride_, count, static_cast<size_t>(columns), logarithm_);
      return;
    }
    const float* from = x + outer_.offset(0, item, outer_.rank());
    float* to = y + outer_.offset(1, item, outer_.rank());
    for (int64_t i = 0; i < count_; ++i) scratch[i] = from[row_.offset(0, i, row_.rank())];
    functions_.row(scratch, scratch, count, logarithm_);
    for (int64_t i = 0; i < count_; ++i) to[row_.offset(1, i, row_.rank())] = scratch[i];
  }

  bool logarithm_;
  SoftmaxFunctions functions_;
  int64_t grain_, elements_;
  bool empty_ = false;
  Access access_ = Access::rows;
  LoopNest row_, outer_;  // x and y
  int64_t count_ = 1, x_stride_ = 1, y_stride_ = 1;
  int64_t block_ = 1, blocks_ = 1, items_ = 0;
};

}  // namespace

Result<CpuKernelPtr> make_softmax(const Stage& stage, const Schedule& schedule, const Device&, uint32_t) {
  const LoopSchedule* loop_schedule = get_if<LoopSchedule>(&schedule);
  const SoftmaxFunctions functions = loop_schedule ? softmax_functions(loop_schedule->unit) : SoftmaxFunctions{};
  if (!loop_schedule || loop_schedule->variant != "rows" || !functions.row) {
    return Error{Reason::backend_lacks_variant, "The CPU backend has no softmax variant '" + variant_of(schedule) +
                                                    "' for the unit '" + unit_of(schedule) + "'; choose 'rows' or 'plain'."};
  }
  if (stage.inputs[0].dtype != DType::f32 || stage.outputs[0].dtype != DType::f32) {
    return Error{Reason::type_not_served, "The softmax rows take and make f32, not " +
                                              std::string(name_of(stage.inputs[0].dtype)) + "; choose the variant 'plain'."};
  }
  return CpuKernelPtr(std::make_unique<SoftmaxKernel>(get<SoftmaxParams>(stage.params), stage.inputs[0], stage.outputs[0],
                                                      loop_schedule->grain, functions));
}

}  // namespace sparkle::cpu
