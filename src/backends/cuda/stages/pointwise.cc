// The pointwise family on CUDA: programs printed and compiled (pointwise_text.h) where NVRTC is at hand, else interpreted
// (kernels/elements/pointwise.cuh): values live in a few slots, which are used again once nothing reads them any more.
#include <algorithm>
#include <array>

#include "backends/cuda/kernels/elements/pointwise_record.h"
#include "backends/cuda/stages/pointwise_axes.h"
#include "backends/cuda/stages/pointwise_launch.h"
#include "backends/cuda/stages/pointwise_text.h"
#include "families/pointwise/arithmetic.h"
#include "families/pointwise/pointwise.h"

namespace sparkle::cuda {
namespace {

Error refused(const std::string& why) { return {Reason::layout_not_served, "the CUDA pointwise kernels " + why}; }

// The program over slots: an operand is loaded before its first use, a slot is free behind the last use of its value.
Status fill_program(const PointwiseParams& p, PointwiseRecord& r) {
  const int inputs = p.inputs, values = inputs + static_cast<int>(p.program.size());
  std::vector<int> last(static_cast<size_t>(values), -1), slot(static_cast<size_t>(values), -1);
  const auto reads = [](const PointwiseInstruction& step) {
    return std::pair(std::array{step.x, step.y, step.z}, arity_of(step.op));
  };
  for (size_t i = 0; i < p.program.size(); ++i) {
    const auto [from, arity] = reads(p.program[i]);
    for (int k = 0; k < arity; ++k) last[static_cast<size_t>(from[static_cast<size_t>(k)])] = static_cast<int>(i);
  }
  std::vector<bool> taken(kPointwiseSlots);
  const auto take = [&](int value) -> Status {
    const auto free = std::find(taken.begin(), taken.end(), false);
    if (free == taken.end())
      return refused("keep " + std::to_string(kPointwiseSlots) + " values at once, and a program has more");
    *free = true;
    slot[static_cast<size_t>(value)] = static_cast<int>(free - taken.begin());
    return ok();
  };
  const auto append = [&](const PointwiseStep& step) -> Status {
    if (r.steps >= kPointwiseSteps)
      return refused("hold programs of " + std::to_string(kPointwiseSteps) + " steps, and one has more");
    r.step[r.steps++] = step;
    return ok();
  };
  for (size_t i = 0; i < p.program.size(); ++i) {
    const PointwiseInstruction& in = p.program[i];
    const auto [from, arity] = reads(in);
    PointwiseStep step;
    uint8_t* const places[] = {&step.x, &step.y, &step.z};
    for (int k = 0; k < arity; ++k) {
      const int value = from[static_cast<size_t>(k)];
      if (slot[static_cast<size_t>(value)] < 0) {
        SPARKLE_CHECK(take(value));
        PointwiseStep load;
        load.op = kPointwiseLoad, load.to = static_cast<uint8_t>(slot[static_cast<size_t>(value)]),
        load.x = static_cast<uint8_t>(value);
        SPARKLE_CHECK(append(load));
      }
      *places[k] = static_cast<uint8_t>(slot[static_cast<size_t>(value)]);
    }
    for (int k = 0; k < arity; ++k) {
      const auto value = static_cast<size_t>(from[static_cast<size_t>(k)]);
      if (last[value] == static_cast<int>(i)) taken[static_cast<size_t>(slot[value])] = false;
    }
    const int value = inputs + static_cast<int>(i);
    SPARKLE_CHECK(take(value));
    step.op = static_cast<uint8_t>(in.op), step.to = static_cast<uint8_t>(slot[static_cast<size_t>(value)]);
    step.a = in.a, step.b = in.b;
    SPARKLE_CHECK(append(step));
  }
  r.result = static_cast<uint8_t>(slot.back());
  return ok();
}

}  // namespace

Result<KernelLaunch> pointwise_launch(const Stage& stage, const Workshop& shop, const std::vector<int>& operands, int result,
                                      int64_t offset) {
  const auto& params = get<PointwiseParams>(stage.params);
  if (stage.inputs.size() > static_cast<size_t>(kPointwiseInputs))
    return refused("read up to " + std::to_string(kPointwiseInputs) + " operands");
  for (const auto* list : {&stage.inputs, &stage.outputs})
    for (const TensorDesc& d : *list)
      if (extent(d.shape, d.layout) > INT32_MAX || d.elements() > INT32_MAX)
        return refused("count elements in 31 bits, and an operand spans more; split the batch");
  const std::vector<PointwiseAxis> axes = merged_axes(stage);
  if (axes.size() > static_cast<size_t>(kPointwiseAxes)) return refused("support up to 8 axes");
  PointwiseRecord r;
  r.count = static_cast<uint32_t>(stage.outputs[0].elements());
  r.rank = static_cast<int32_t>(axes.size());
  const size_t inputs = stage.inputs.size();
  for (size_t i = 0; i < axes.size(); ++i) {
    r.size[i] = divisor_of(axes[i].size);
    for (size_t k = 0; k < inputs; ++k) r.strides[k][i] = static_cast<int32_t>(axes[i].strides[k]);
    r.strides[kPointwiseInputs][i] = static_cast<int32_t>(axes[i].strides[inputs]);
  }
  for (size_t k = 0; k < inputs; ++k) r.type[k] = static_cast<uint8_t>(stage.inputs[k].dtype);
  r.type[kPointwiseInputs] = static_cast<uint8_t>(stage.outputs[0].dtype);
  const DType arithmetic = pointwise_arithmetic(stage.inputs, stage.outputs[0]);
  r.arithmetic = static_cast<uint8_t>(arithmetic);
  SPARKLE_CHECK(fill_program(params, r));
  const auto narrow = [](const TensorDesc& d) { return is_narrow(d.dtype); };
  const bool any_narrow = std::any_of(stage.inputs.begin(), stage.inputs.end(), narrow) || narrow(stage.outputs[0]);
  const bool powers = std::any_of(params.program.begin(), params.program.end(),
                                  [](const PointwiseInstruction& step) { return step.op == PointwiseOp::power_of_two; });
  const std::string kernel = arithmetic == DType::f32   ? "f32"
                             : arithmetic == DType::f64 ? "f64"
                             : arithmetic == DType::u64 ? "u64"
                                                        : "i64";
  SPARKLE_TRY(launch, launch_of(shop, (any_narrow || powers ? "sparkle_pointwise_narrow_" : "sparkle_pointwise_") + kernel, r,
                                blocks_for(r.count, kPointwiseThreads * kPointwiseEach), kPointwiseThreads));
  for (size_t k = 0; k < inputs; ++k)
    launch.addresses.push_back({offsetof(PointwiseRecord, x) + k * sizeof(void*), operands[k], 0});
  launch.addresses.push_back({offsetof(PointwiseRecord, y), result, offset});
  return launch;
}

// The program as a kernel of its own.
static Result<KernelLaunch> compiled_launch(const Stage& stage, const Workshop& shop) {
  SPARKLE_TRY(program, pointwise_text(stage));
  return launch_of_program(stage, shop, std::move(program));
}

Result<CudaKernelPtr> make_pointwise(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t) {
  const std::string& variant = variant_of(schedule);
  if (variant != "interpreted" && variant != "compiled")
    return Error{Reason::backend_lacks_variant, "the CUDA pointwise kernels have no variant '" + variant + "'"};
  auto kernel = std::make_unique<CudaKernel>(stage);
  if (stage.outputs[0].elements() == 0) return kernel;
  std::vector<int> operands;
  for (size_t i = 0; i < stage.inputs.size(); ++i) operands.push_back(static_cast<int>(i));
  const auto result = static_cast<int>(operands.size());
  SPARKLE_TRY(launch,
              variant == "compiled" ? compiled_launch(stage, shop) : pointwise_launch(stage, shop, operands, result, 0));
  kernel->launches.push_back(std::move(launch));
  return kernel;
}

}  // namespace sparkle::cuda
