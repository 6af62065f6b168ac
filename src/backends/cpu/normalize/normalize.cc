// The normalize family on the CPU: the variant "rows". Mean, then squared deviations from it, then one pointwise pass
// (x - mean) * factor * scale + bias. Where groups are parts of the memory of their own, batches of them that fit the L2 cache
// go through all three passes one after the other, so that x comes from memory once.
#include <algorithm>
#include <cmath>
#include <optional>

#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/normalize/row_kernel.h"
#include "backends/cpu/pointwise/pointwise_loop.h"
#include "backends/cpu/reduce/reduce_loop.h"
#include "families/loops/grain.h"
#include "families/normalize/normalize.h"
#include "families/pointwise/pointwise.h"

namespace sparkle::cpu {
namespace {

// Working set of a batch, input and output, where the device does not tell its L2: half of a common 512 KB.
constexpr int64_t kBatchBytes = 256 * 1024;
constexpr int64_t kMostTasks = 64;

// All three passes over one shape; groups are numbered by the reduction.
class Passes {
 public:
  static Result<Passes> make(const NormalizeParams& params, const std::vector<TensorDesc>& inputs, const TensorDesc& y,
                             const std::string& unit, int64_t grain) {
    SPARKLE_TRY(reduce, ReduceLoop::make(inputs[0], params.axes, unit, grain));
    TensorDesc per_group{DType::f32, inputs[0].shape, inputs[0].layout};
    per_group.layout.strides = reduce.group_stride();
    // Values: x, factor, then mean, scale and bias where present.
    PointwiseParams program;
    std::vector<TensorDesc> operands{inputs[0], per_group};
    int value = 0;
    const int mean = params.center ? static_cast<int>(operands.size()) : -1;
    if (params.center) operands.push_back(per_group);
    const int scale = params.scale ? static_cast<int>(operands.size()) : -1;
    if (params.scale) operands.push_back(inputs[1]);
    const int bias = params.bias ? static_cast<int>(operands.size()) : -1;
    if (params.bias) operands.push_back(inputs[params.scale ? 2 : 1]);
    program.inputs = static_cast<int>(operands.size());
    const auto add = [&](PointwiseOp op, int y_value) {
      program.program.push_back({op, value, y_value, 0, 0, 0});
      value = program.inputs + static_cast<int>(program.program.size()) - 1;
    };
    if (params.center) add(PointwiseOp::sub, mean);
    add(PointwiseOp::mul, 1);
    if (params.scale) add(PointwiseOp::mul, scale);
    if (params.bias) add(PointwiseOp::add, bias);
    SPARKLE_TRY(apply, PointwiseLoop::make(program, operands, y, unit, grain));
    return Passes(params, std::move(reduce), std::move(apply));
  }

  // Totals and partial totals in double, mean and factor in float.
  int64_t workspace_bytes() const { return (16 * reduce_.groups() + 8 * reduce_.partials() + 63) / 64 * 64; }

  // x, then scale and bias where present.
  void run(std::span<std::byte* const> inputs, std::byte* y, std::byte* workspace, Executor& executor) const {
    if (reduce_.groups() == 0 || reduce_.count() == 0) return;
    const int64_t groups = reduce_.groups();
    double* totals = reinterpret_cast<double*>(workspace);
    double* partials = totals + groups;
    float* mean = reinterpret_cast<float*>(partials + reduce_.partials());
    float* factor = mean + groups;
    const float* x = reinterpret_cast<const float*>(inputs[0]);
    const double count = static_cast<double>(reduce_.count());
    if (params_.center) {
      reduce_.run(Fold::sum, x, nullptr, totals, partials, executor);
      for (int64_t i = 0; i < groups; ++i) mean[i] = static_cast<float>(totals[i] / count);
      reduce_.run(Fold::sum_square_shifted, x, mean, totals, partials, executor);
    } else {
      const Fold fold = params_.divisor == NormalizeDivisor::l1 ? Fold::sum_abs : Fold::sum_square;
      reduce_.run(fold, x, nullptr, totals, partials, executor);
    }
    for (int64_t i = 0; i < groups; ++i) factor[i] = static_cast<float>(normalize_factor(params_, totals[i], count));
    std::byte* operands[5] = {inputs[0], reinterpret_cast<std::byte*>(factor)};
    size_t used = 2;
    if (params_.center) operands[used++] = reinterpret_cast<std::byte*>(mean);
    for (size_t i = 1; i < inputs.size(); ++i) operands[used++] = inputs[i];
    apply_.run({operands, used}, y, executor);
  }

 private:
  Passes(const NormalizeParams& params, ReduceLoop reduce, PointwiseLoop apply)
      : params_(params), reduce_(std::move(reduce)), apply_(std::move(apply)) {}

  NormalizeParams params_;
  ReduceLoop reduce_;
  PointwiseLoop apply_;
};

// How the tensor is cut into batches: `size` indices of one kept axis, for every index of the kept axes outside of it.
struct Batching {
  int axis = -1;  // -1: one batch
  int64_t size = 0;
  Dims outer;  // sizes of all axes that are walked index by index; 1 elsewhere
};

Batching choose_batches(const NormalizeParams& params, const TensorDesc& x, int64_t batch_bytes) {
  const int rank = x.shape.size();
  const auto is_reduced = [&](int axis) {
    return std::find(params.axes.begin(), params.axes.end(), axis) != params.axes.end();
  };
  int64_t reach = 0;  // the longest step of a reduced axis: kept axes with longer ones hold whole groups
  for (int i = 0; i < rank; ++i)
    if (is_reduced(i) && x.shape[i] > 1) reach = std::max(reach, std::abs(x.layout.strides[i]));
  Batching batching;
  batching.outer = Dims::filled(rank, 1);
  int64_t elements = x.shape.product();
  std::vector<int> outside;
  for (int i = 0; i < rank; ++i)
    if (!is_reduced(i) && x.shape[i] > 1 && std::abs(x.layout.strides[i]) > reach) outside.push_back(i);
  std::sort(outside.begin(), outside.end(), [&](int a, int b) {
    const int64_t pa = std::abs(x.layout.strides[a]), pb = std::abs(x.layout.strides[b]);
    return pa != pb ? pa > pb : a < b;
  });
  for (int axis : outside) {
    const int64_t each = elements / x.shape[axis];  // elements per index of this axis
    batching.axis = axis;
    batching.size = std::clamp<int64_t>(batch_bytes / (8 * each), 1, x.shape[axis]);
    if (8 * each <= batch_bytes || axis == outside.back()) break;
    batching.outer[axis] = x.shape[axis];
    elements = each;
  }
  return batching;
}

class NormalizeKernel final : public CpuKernel {
 public:
  NormalizeKernel(Stage stage, int64_t grain, Batching batching, Passes whole, std::optional<Passes> batch,
                  std::optional<Passes> rest)
      : stage_(std::move(stage)),
        grain_(grain),
        batching_(batching),
        whole_(std::move(whole)),
        batch_(std::move(batch)),
        rest_(std::move(rest)) {
    if (!batch_) return;
    per_outer_ = (stage_.inputs[0].shape[batching_.axis] + batching_.size - 1) / batching_.size;
    batches_ = batching_.outer.product() * per_outer_;
  }
  int64_t workspace_bytes() const override {
    return std::max(whole_.workspace_bytes(), batch_ ? batch_->workspace_bytes() * kMostTasks : 0);
  }

  void run(const CpuLaunch& launch) const override {
    const int64_t elements = stage_.outputs[0].elements(), width = launch.executor->width();
    // Without a batch for every second task the passes share each tensor instead.
    if (!batch_ || 2 * batches_ < tasks_of(grain_, elements, elements, width)) {
      whole_.run(launch.inputs, launch.outputs[0], launch.workspace, *launch.executor);
      return;
    }
    const auto tasks = static_cast<int>(tasks_of(grain_, elements, std::min(batches_, kMostTasks), width));
    parallel_for(*launch.executor, tasks, [&](int task, int) {
      const auto [begin, end] = task_range(batches_, tasks, task);
      for (int64_t b = begin; b < end; ++b) run_batch(launch, b, launch.workspace + task * batch_->workspace_bytes());
    });
  }

 private:
  void run_batch(const CpuLaunch& launch, int64_t number, std::byte* workspace) const {
    Dims at = Dims::filled(batching_.outer.size(), 0);
    int64_t outer = number / per_outer_;
    for (int i = at.size() - 1; i >= 0; --i) at[i] = outer % batching_.outer[i], outer /= batching_.outer[i];
    const int64_t first = number % per_outer_ * batching_.size;
    at[batching_.axis] = first;
    const auto moved = [&](std::byte* data, const TensorDesc& desc) {
      int64_t offset = 0;
      for (int i = 0; i < at.size(); ++i) offset += at[i] * desc.layout.strides[i];
      return data + offset * size_of(desc.dtype);
    };
    std::byte* inputs[3] = {};
    for (size_t i = 0; i < launch.inputs.size(); ++i) inputs[i] = moved(launch.inputs[i], stage_.inputs[i]);
    const bool full = first + batching_.size <= stage_.inputs[0].shape[batching_.axis];
    InlineExecutor inline_executor;
    (full ? *batch_ : *rest_)
        .run({inputs, launch.inputs.size()}, moved(launch.outputs[0], stage_.outputs[0]), workspace, inline_executor);
  }

  Stage stage_;
  int64_t grain_;
  Batching batching_;
  Passes whole_;
  std::optional<Passes> batch_, rest_;  // a batch and the smaller last one
  int64_t per_outer_ = 1, batches_ = 1;
};

}  // namespace

Result<CpuKernelPtr> make_normalize(const Stage& stage, const Schedule& schedule, const Device& device, uint32_t) {
  const LoopSchedule* loop_schedule = get_if<LoopSchedule>(&schedule);
  if (!loop_schedule || loop_schedule->variant != "rows") {
    return Error{Reason::backend_lacks_variant,
                 "The CPU backend has no normalize variant '" + variant_of(schedule) + "'; choose 'rows' or 'plain'."};
  }
  const NormalizeParams& params = get<NormalizeParams>(stage.params);
  if (stage.inputs.size() != 1u + params.scale + params.bias) {
    return Error{Reason::bad_shape, "A normalisation has " + std::to_string(stage.inputs.size()) +
                                        " operands, but its parameters ask for " +
                                        std::to_string(1 + params.scale + params.bias) + "."};
  }
  for (const TensorDesc& desc : stage.inputs) {
    if (desc.dtype != DType::f32) {
      return Error{Reason::type_not_served,
                   "The normalize rows take f32, not " + std::string(name_of(desc.dtype)) + "; choose the variant 'plain'."};
    }
  }
  const std::string& unit = loop_schedule->unit;
  const int64_t grain = loop_schedule->grain;
  if (CpuKernelPtr rows = make_normalize_rows(stage, unit, grain)) return rows;
  SPARKLE_TRY(whole, Passes::make(params, stage.inputs, stage.outputs[0], unit, grain));
  const MemoryLevel* l2 = device.level("L2");
  const int64_t batch_bytes = l2 && l2->bytes > 0 ? l2->bytes / 2 : kBatchBytes;
  const Batching batching = choose_batches(params, stage.inputs[0], batch_bytes);
  std::optional<Passes> batch, rest;
  if (batching.axis >= 0 && stage.inputs[0].shape.product() > 0) {
    const auto passes_of = [&](int64_t size) {
      std::vector<TensorDesc> inputs = stage.inputs;
      inputs.push_back(stage.outputs[0]);
      for (TensorDesc& desc : inputs) {
        for (int i = 0; i < desc.shape.size(); ++i)
          if (batching.outer[i] > 1) desc.shape[i] = 1;
        desc.shape[batching.axis] = size;
      }
      const TensorDesc y = inputs.back();
      inputs.pop_back();
      return Passes::make(params, inputs, y, unit, grain);
    };
    SPARKLE_TRY(full, passes_of(batching.size));
    batch = std::move(full);
    const int64_t left = stage.inputs[0].shape[batching.axis] % batching.size;
    if (left > 0) {
      SPARKLE_TRY(last, passes_of(left));
      rest = std::move(last);
    }
  }
  return CpuKernelPtr(
      std::make_unique<NormalizeKernel>(stage, grain, batching, std::move(whole), std::move(batch), std::move(rest)));
}

}  // namespace sparkle::cpu
