// Stages on 8-bit integers of the gemm and depthwise families: what their kernels share (glsl/integer_sums.glsl).
#pragma once

#include "backends/vulkan/kernels/byte_types.h"
#include "backends/vulkan/kernels/products/gemm_record.h"
#include "families/depthwise/depthwise.h"
#include "families/integers/integers.h"
#include "families/loops/tile_schedule.h"

namespace sparkle::vulkan {

Result<VulkanKernelPtr> make_integer_gemm(const Stage&, const TileSchedule&, const Workshop&, uint32_t constants);
Result<VulkanKernelPtr> make_integer_depthwise(const Stage&, const DepthwiseSchedule&, const Workshop&, uint32_t constants);

// Errors: type_not_served.
Status check_integer_operands(const Stage& stage, const Epilogue& epilogue, const Workshop& shop);
// Types and epilogue.
void set_integers(PipelineRequest& request, const Stage& stage, const Epilogue& epilogue);
// A dispatch with everything but its groups.
Dispatch integer_dispatch(const Stage& stage, const Epilogue& epilogue, const Pipeline* pipeline, const DeviceBuffer& record,
                          int32_t first_instance);
// One output a thread; `kernel` belongs to the stage that `g` describes.
Status add_naive(VulkanKernel& kernel, const GemmRecord& g, const Epilogue& epilogue, const Workshop& shop);

}  // namespace sparkle::vulkan
