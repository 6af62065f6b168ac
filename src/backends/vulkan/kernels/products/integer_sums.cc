#include "backends/vulkan/kernels/products/integer_sums.h"

#include <algorithm>

#include "backends/vulkan/shaders/gemm_constants.h"

namespace sparkle::vulkan {
namespace {
constexpr int64_t kThreads = 64;
}

Status check_integer_operands(const Stage& stage, const Epilogue& e, const Workshop& shop) {
  SPARKLE_CHECK(check_bytes(shop));
  return check_integer_stage(stage.inputs, stage.outputs[0], e);
}

void set_integers(PipelineRequest& request, const Stage& stage, const Epilogue& e) {
  using enum GemmConstant;
  const auto code = [](const TensorDesc& d) { return byte_type(d.dtype).value_or(0); };
  set(request, {{kTypeX, code(stage.inputs[0])},
                {kTypeW, code(stage.inputs[1])},
                {kTypeY, code(stage.outputs[0])},
                {kScale, e.scale},
                {kBias, e.bias}});
}

Dispatch integer_dispatch(const Stage& stage, const Epilogue& e, const Pipeline* pipeline, const DeviceBuffer& record,
                          int32_t first_instance) {
  const IntegerOperands at = integer_operands(e);
  const auto stride = [&](int operand) {
    if (operand < 0) return int32_t{0};
    const TensorDesc& d = stage.inputs[static_cast<size_t>(operand)];
    return d.shape.empty() || d.shape.back() == 1 ? int32_t{0} : static_cast<int32_t>(d.layout.strides.back());
  };
  Dispatch d;
  d.pipeline = pipeline;
  d.addresses = {{0}, {1}, {static_cast<int>(stage.inputs.size())}};
  for (const int operand : {at.scale, at.bias, at.a_zero, at.b_zero, at.y_zero}) d.addresses.push_back({std::max(operand, 0)});
  d.push(record.address());
  d.push(first_instance);
  const IntegerRange range = output_range(stage.outputs[0].dtype, e);
  d.push(static_cast<int32_t>(range.low));
  d.push(static_cast<int32_t>(range.high));
  for (const int operand : {at.scale, at.bias, at.b_zero}) d.push(stride(operand));
  d.after_previous = false;
  return d;
}

Status add_naive(VulkanKernel& kernel, const GemmRecord& g, const Epilogue& e, const Workshop& shop) {
  PipelineRequest request;
  request.shader = "integer_naive";
  request.constants = {kThreads, 1, 1};
  set_integers(request, kernel.stage, e);
  SPARKLE_TRY(pipeline, shop.pipelines->get(request));
  SPARKLE_TRY(record, shop.upload(&g, sizeof g));
  Dispatch d = integer_dispatch(kernel.stage, e, pipeline, *record, 0);
  d.groups = groups_of_threads(kernel.stage.outputs[0].elements(), kThreads);
  kernel.dispatches.push_back(std::move(d));
  kernel.records.push_back(std::move(record));
  return ok();
}

}  // namespace sparkle::vulkan
