// The normalize family on Vulkan: rows.h says how rows are taken, glsl/normalize.comp what is made of them.
#include <algorithm>
#include <bit>

#include "backends/vulkan/kernels/real_types.h"
#include "backends/vulkan/kernels/rows/rows.h"
#include "families/normalize/normalize.h"

namespace sparkle::vulkan {

Result<VulkanKernelPtr> make_normalize(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t) {
  if (variant_of(schedule) != "rows_gpu")
    return Error{Reason::backend_lacks_variant, "the Vulkan normalize kernels have no variant '" + variant_of(schedule) + "'"};
  const auto is_double = [](const TensorDesc& d) { return d.dtype == DType::f64; };
  const bool doubles = std::all_of(stage.inputs.begin(), stage.inputs.end(), is_double) && is_double(stage.outputs[0]) &&
                       shop.context->features().f64;
  SPARKLE_TRY(fp16, doubles ? Result<bool>(false) : in_fp16(stage, shop));
  const auto& p = get<NormalizeParams>(stage.params);
  auto kernel = std::make_unique<VulkanKernel>(stage);
  if (stage.outputs[0].elements() == 0) return kernel;
  uint32_t within = 0;
  for (const int64_t axis : p.axes) within |= 1u << axis;
  const int scale = p.scale ? 1 : -2, bias = p.bias ? 1 + p.scale : -2;
  const auto operand = [&](int i) { return i < 0 ? nullptr : &stage.inputs[static_cast<size_t>(i)]; };
  // Absolute deviations from the means of parts do not add up to those from the whole mean, and the workspace holds floats.
  const bool parts = !doubles && !(p.divisor == NormalizeDivisor::l1 && p.center);
  SPARKLE_TRY(record, rows_of({&stage.inputs[0], operand(scale), operand(bias), &stage.outputs[0]}, within, parts));
  record.epsilon = static_cast<float>(p.epsilon);
  const auto bits = std::bit_cast<uint64_t>(p.epsilon);
  record.own[0] = static_cast<uint32_t>(bits), record.own[1] = static_cast<uint32_t>(bits >> 32);
  const std::string shader = doubles ? "normalize_double" : shader_for("normalize", fp16);
  SPARKLE_TRY(buffer, shop.upload(&record, sizeof record));
  const auto add = [&](uint32_t step) -> Status {
    const uint32_t constants[] = {step, static_cast<uint32_t>(p.divisor), p.center, p.scale && step != 1, p.bias && step != 1};
    SPARKLE_TRY(dispatch, rows_dispatch(shop, shader, constants, {0, scale, bias, static_cast<int>(stage.inputs.size())},
                                        record, buffer->address()));
    kernel->dispatches.push_back(std::move(dispatch));
    return ok();
  };
  SPARKLE_CHECK(add_steps(*kernel, record, add));
  kernel->records.push_back(std::move(buffer));
  return kernel;
}

}  // namespace sparkle::vulkan
