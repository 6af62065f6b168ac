// The reduce family on the CPU: the variant "strips". One or two folds, then the last step per output element.
#include <cmath>

#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/reduce/reduce_loop.h"
#include "families/reduce/reduce.h"

namespace sparkle::cpu {
namespace {

Fold fold_of(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::max: return Fold::max;
    case ReduceKind::min: return Fold::min;
    case ReduceKind::product: return Fold::product;
    case ReduceKind::l1: return Fold::sum_abs;
    case ReduceKind::l2:
    case ReduceKind::sum_square: return Fold::sum_square;
    case ReduceKind::log_sum_exp: return Fold::sum_exp_shifted;
    case ReduceKind::sum:
    case ReduceKind::mean:
    case ReduceKind::log_sum: return Fold::sum;
  }
  return Fold::sum;
}

class ReduceKernel final : public CpuKernel {
 public:
  ReduceKernel(ReduceKind kind, ReduceLoop loop, const TensorDesc& y) : kind_(kind), loop_(std::move(loop)) {
    const Dims strides[] = {loop_.group_stride(), y.layout.strides};
    outputs_ = make_nest(y.shape, strides, 0);
  }
  // Totals and partial totals; log_sum_exp keeps a shift per group besides.
  int64_t workspace_bytes() const override { return 8 * (loop_.groups() + loop_.partials()) + shift_bytes(); }

  void run(const CpuLaunch& launch) const override {
    if (loop_.groups() == 0) return;
    const float* x = reinterpret_cast<const float*>(launch.inputs[0]);
    double* totals = reinterpret_cast<double*>(launch.workspace);
    double* partials = totals + loop_.groups();
    float* shift = nullptr;
    if (kind_ == ReduceKind::log_sum_exp) {
      shift = reinterpret_cast<float*>(partials + loop_.partials());
      loop_.run(Fold::max, x, nullptr, totals, partials, *launch.executor);
      for (int64_t i = 0; i < loop_.groups(); ++i) shift[i] = std::isfinite(totals[i]) ? static_cast<float>(totals[i]) : 0.0f;
    }
    loop_.run(fold_of(kind_), x, shift, totals, partials, *launch.executor);
    store(totals, shift, reinterpret_cast<float*>(launch.outputs[0]));
  }

 private:
  int64_t shift_bytes() const { return kind_ == ReduceKind::log_sum_exp ? 4 * loop_.groups() : 0; }

  double finish(double total, float shift) const {
    switch (kind_) {
      case ReduceKind::mean: return total / static_cast<double>(loop_.count());
      case ReduceKind::l2: return std::sqrt(total);
      case ReduceKind::log_sum: return std::log(total);
      case ReduceKind::log_sum_exp: return std::log(total) + static_cast<double>(shift);
      default: return total;
    }
  }

  void store(const double* totals, const float* shift, float* y) const {
    const int inner = outputs_.rank() - 1;
    const int64_t columns = outputs_.size[inner], rows = loop_.groups() / columns;
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t group = outputs_.offset(0, row, inner), at = outputs_.offset(1, row, inner);
      for (int64_t c = 0; c < columns; ++c) {
        const int64_t from = group + c * outputs_.strides[0][inner];
        y[at + c * outputs_.strides[1][inner]] = static_cast<float>(finish(totals[from], shift ? shift[from] : 0.0f));
      }
    }
  }

  ReduceKind kind_;
  ReduceLoop loop_;
  LoopNest outputs_;  // group numbers and y
};

}  // namespace

Result<CpuKernelPtr> make_reduce(const Stage& stage, const Schedule& schedule, const Device&, uint32_t) {
  const LoopSchedule* loop_schedule = get_if<LoopSchedule>(&schedule);
  if (!loop_schedule || loop_schedule->variant != "strips") {
    return Error{Reason::backend_lacks_variant,
                 "The CPU backend has no reduce variant '" + variant_of(schedule) + "'; choose 'strips' or 'plain'."};
  }
  const ReduceParams& params = get<ReduceParams>(stage.params);
  if (stage.outputs[0].dtype != DType::f32) {
    return Error{Reason::type_not_served, "Vector reductions make f32, not " + std::string(name_of(stage.outputs[0].dtype)) +
                                              "; choose the variant 'plain'."};
  }
  SPARKLE_TRY(loop, ReduceLoop::make(stage.inputs[0], params.axes, loop_schedule->unit, loop_schedule->grain));
  return CpuKernelPtr(std::make_unique<ReduceKernel>(params.kind, std::move(loop), stage.outputs[0]));
}

}  // namespace sparkle::cpu
