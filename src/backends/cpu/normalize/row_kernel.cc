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

constexpr int64_t kBlock = 4096;  // floats summed in fp32, the rest in double; a block stays in L1 for its second pass

// Scale and bias of a row: one value for each of its elements or one for each segment.
struct Row {
  int64_t segments = 1, count = 0;  // elements of a segment
  std::vector<bool> constant;       // per operand: within a segment
  std::vector<int64_t> step;        // per operand: from segment to segment
};

class RowKernel final : public CpuKernel {
 public:
  RowKernel(const NormalizeParams& params, LoopNest outer, Row row, std::string_view unit, int64_t grain)
      : params_(params),
        grain_(grain),
        outer_(std::move(outer)),
        rows_(outer_.size.product()),
        row_(std::move(row)),
        count_(row_.segments * row_.count),
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
  struct Statistics {
    double mean = 0, spread = 0;
  };

  // Each block's deviations are from its own mean, so that it comes to L1 once; sums of squares about `shift` become sums about
  // the mean by what is known of the block.
  Statistics statistics(const float* x) const {
    Statistics all;
    double known = 0;
    for (int64_t i = 0; i < count_; i += kBlock) {
      const auto size = static_cast<size_t>(std::min(kBlock, count_ - i));
      const double count = static_cast<double>(size);
      if (!params_.center) {
        all.spread += static_cast<double>(spread_.row(x + i, size, 0));
        continue;
      }
      const double mean = static_cast<double>(sum_.row(x + i, size, 0)) / count;
      const auto shift = static_cast<float>(mean);
      const auto squares = static_cast<double>(spread_.row(x + i, size, shift));
      const double off = mean - static_cast<double>(shift), before = known, from_all = mean - all.mean;
      known += count;
      all.mean += from_all * count / known;
      all.spread += squares - count * off * off + from_all * from_all * before * count / known;
    }
    return all;
  }

  // A row of one block: no sum about another mean, which rows of some vectors would wait for.
  Statistics statistics_of_block(const float* x) const {
    const auto size = static_cast<size_t>(count_);
    const double mean = params_.center ? static_cast<double>(sum_.row(x, size, 0)) / static_cast<double>(count_) : 0;
    return {mean, static_cast<double>(spread_.row(x, size, static_cast<float>(mean)))};
  }

  void run_row(const CpuLaunch& launch, int64_t row) const {
    const auto operand = [&](size_t i) {
      return reinterpret_cast<const float*>(launch.inputs[i]) + outer_.offset(i, row, outer_.rank());
    };
    const float* x = operand(0);
    const Statistics found = count_ <= kBlock ? statistics_of_block(x) : statistics(x);
    const double factor = normalize_factor(params_, found.spread, static_cast<double>(count_));
    ApplyArguments a{x, reinterpret_cast<float*>(launch.outputs[0]) + outer_.offset(launch.inputs.size(), row, outer_.rank()),
                     static_cast<size_t>(row_.count), static_cast<float>(found.mean)};
    const size_t bias_at = params_.scale ? 2 : 1;
    const float* scale = params_.scale ? operand(1) : nullptr;
    const float* bias = params_.bias ? operand(bias_at) : nullptr;
    for (int64_t s = 0; s < row_.segments; ++s, a.x += row_.count, a.y += row_.count) {
      a.factor = static_cast<float>(scale && row_.constant[1] ? factor * static_cast<double>(*scale) : factor);
      a.scale = scale && !row_.constant[1] ? scale : nullptr;
      a.bias = bias && !row_.constant[bias_at] ? bias : nullptr;
      a.has_bias_value = bias && !a.bias;
      if (a.has_bias_value) a.bias_value = *bias;
      apply_(a);
      if (scale) scale += row_.step[1];
      if (bias) bias += row_.step[bias_at];
    }
  }

  NormalizeParams params_;
  int64_t grain_;
  LoopNest outer_;  // operands, then y
  int64_t rows_;
  Row row_;
  int64_t count_;
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
  const LoopNest nest = make_nest(row_shape, row_strides, operands.size() - 1);
  if (nest.rank() > 2) return nullptr;
  const int inner = nest.rank() - 1;
  Row row;
  row.count = nest.size[inner];
  if (inner == 1) row.segments = nest.size[0];
  for (size_t i = 0; i < operands.size(); ++i) {
    const bool moves = i == 0 || i + 1 == operands.size();
    const int64_t stride = nest.strides[i][inner], step = inner == 1 ? nest.strides[i][0] : 0;
    if (stride != 1 && (moves || stride != 0)) return nullptr;
    if (moves && row.segments > 1 && step != row.count) return nullptr;
    row.constant.push_back(stride == 0), row.step.push_back(step);
  }
  return std::make_unique<RowKernel>(params, make_nest(outer_shape, outer_strides, operands.size() - 1), std::move(row), unit,
                                     grain);
}

}  // namespace sparkle::cpu
