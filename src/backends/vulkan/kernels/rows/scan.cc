// The scan family on Vulkan: rows.h says how rows are taken, glsl/scan.comp adds along them.
#include "families/scan/scan.h"

#include "backends/vulkan/kernels/real_types.h"
#include "backends/vulkan/kernels/rows/rows.h"
#include "families/type_set.h"

namespace sparkle::vulkan {
namespace {

// The shader that adds elements of this type, where the device stores and computes it.
Result<std::string> scan_shader(const Stage& stage, const Workshop& shop) {
  const DType type = stage.inputs[0].dtype;
  const Features& f = shop.context->features();
  const int64_t bytes = size_of(type);
  if (type == stage.outputs[0].dtype) {
    if (type == DType::f64 && f.f64) return std::string("scan_doubles");
    if (kIntegers.has(type) && (bytes != 1 || f.i8) && (bytes != 2 || f.f16)) return "scan_integers_" + std::to_string(bytes);
  }
  SPARKLE_TRY(fp16, in_fp16(stage, shop));
  return shader_for("scan", fp16);
}

}  // namespace

Result<VulkanKernelPtr> make_scan(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t) {
  if (variant_of(schedule) != "rows_gpu")
    return Error{Reason::backend_lacks_variant, "the Vulkan scan kernels have no variant '" + variant_of(schedule) + "'"};
  SPARKLE_TRY(shader, scan_shader(stage, shop));
  const auto& p = get<ScanParams>(stage.params);
  const TensorDesc &x = stage.inputs[0], &y = stage.outputs[0];
  auto kernel = std::make_unique<VulkanKernel>(stage);
  if (y.elements() == 0) return kernel;
  SPARKLE_TRY(record, rows_of({&x, nullptr, nullptr, &y}, 1u << p.axis, true));
  SPARKLE_TRY(buffer, shop.upload(&record, sizeof record));
  const auto add = [&](uint32_t step) -> Status {
    const uint32_t constants[] = {step, p.exclusive, p.reverse};
    SPARKLE_TRY(dispatch, rows_dispatch(shop, shader, constants, {0, -2, -2, 1}, record, buffer->address()));
    kernel->dispatches.push_back(std::move(dispatch));
    return ok();
  };
  SPARKLE_CHECK(add_steps(*kernel, record, add));
  kernel->records.push_back(std::move(buffer));
  return kernel;
}

}  // namespace sparkle::vulkan
