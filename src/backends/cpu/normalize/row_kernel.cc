#include "backends/cpu/normalize/row_kernel.h"

#include <algorithm>
#include <cmath>

#include "backends/cpu/loop_nest.h"
#include "backends/cpu/normalize/apply_row.h"
#include "backends/cpu/reduce/fold.h"
#include "families/loops/grain.h"
#include "families/normalize/normalize.h"

namespace sparkle::cpu {
namespace {

constexpr int64_t kBlock = 4096;  // floats summed in fp32, the rest in double

class RowKernel final : public CpuKernel {
 public:
  RowKernel(const NormalizeParams& params, LoopNest outer, int64_t count, std::string_view unit, int64_t grain)
      : params_(params),
        grain_(grain),
        outer_(std::move(outer)),
        rows_(outer_.size.product()),
        count_(count),
        apply_(apply_row(unit)),
        sum_(fold_functions(unit, Fold::sum)),
        spread_(fold_functions(unit, params.divisor == NormalizeDivisor::l1 ? Fold::sum_abs : Fold::sum_square_shifted)) {}

  void run(const CpuLaunch& launch) const override {
    const int64_t tasks = tasks_of(grain_, rows_ * count_, rows_, launch.executor->width());
    for_each_range(*launch.executor, rows_, tasks, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) run_row(launch, row);
    });
  }

 private:
  double total(const FoldFunctions& f, const float* x, float shift) const {
    double sum = 0;
    for (int64_t i = 0; i < count_; i += kBlock)
      sum += static_cast<double>(f.row(x + i, static_cast<size_t>(std::min(kBlock, count_ - i)), shift));
    return sum;
  }
  void run_row(const CpuLaunch& launch, int64_t row) const {
    const auto operand = [&](size_t i) {
      return reinterpret_cast<const float*>(launch.inputs[i]) + outer_.offset(i, row, outer_.rank());
    };
    const float* x = operand(0);
    float* y = reinterpret_cast<float*>(launch.outputs[0]) + outer_.offset(launch.inputs.size(), row, outer_.rank());
    const double count = static_cast<double>(count_);
    const float mean = params_.center ? static_cast<float>(total(sum_, x, 0) / count) : 0.0f;
    const auto factor = static_cast<float>(normalize_factor(params_, total(spread_, x, mean), count));
    apply_(x, y, static_cast<size_t>(count_), mean, factor, params_.scale ? operand(1) : nullptr,
           params_.bias ? operand(params_.scale ? 2 : 1) : nullptr);
  }

  NormalizeParams params_;
  int64_t grain_;
  LoopNest outer_;  // operands, then y
  int64_t rows_, count_;
  ApplyRow apply_;
  FoldFunctions sum_, spread_;
};

}  // namespace

CpuKernelPtr make_normalize_rows(const Stage& stage, std::string_view unit, int64_t grain) {
  const NormalizeParams& params = get<NormalizeParams>(stage.params);
  if (!apply_row(unit) || stage.inputs[0].shape.product() == 0) return nullptr;
  std::vector<const TensorDesc*> operands;
  for (const TensorDesc& desc : stage.inputs) operands.push_back(&desc);
  operands.push_back(&stage.outputs[0]);
  Dims row_shape, outer_shape;
  std::vector<Dims> row_strides(operands.size()), outer_strides(operands.size());
  for (int axis = 0; axis < stage.inputs[0].shape.size(); ++axis) {
    const bool reduced = std::find(params.axes.begin(), params.axes.end(), axis) != params.axes.end();
    (reduced ? row_shape : outer_shape).push_back(stage.inputs[0].shape[axis]);
    for (size_t i = 0; i < operands.size(); ++i)
      (reduced ? row_strides : outer_strides)[i].push_back(operands[i]->layout.strides[axis]);
  }
  const LoopNest row = make_nest(row_shape, row_strides, operands.size() - 1);
  if (row.rank() != 1) return nullptr;
  for (size_t i = 0; i < operands.size(); ++i)
    if (row.strides[i][0] != 1) return nullptr;
  return std::make_unique<RowKernel>(params, make_nest(outer_shape, outer_strides, operands.size() - 1), row.size[0], unit,
                                     grain);
}

}  // namespace sparkle::cpu
