// The deform family on Vulkan: pixels are sampled into shared memory and multiplied there (glsl/deform.comp).
#include <algorithm>

#include "backends/vulkan/kernels/real_types.h"
#include "backends/vulkan/kernels/moves/chunks.h"
#include "families/deform/deform.h"

namespace sparkle::vulkan {
namespace {

constexpr int64_t kPixels = 16, kFilters = 64;  // of a workgroup
constexpr uint32_t kThreads = 64;

// As in glsl/deform.comp.
struct DeformRecord {
  int32_t pixels, depth, inner, outer, height, width, taps;
  Divisor columns, rows, channels, filter_columns, offset_channels, filter_tiles, groups;
  int32_t stride[2], dilation[2], pad[2];
  int32_t x[4], w[4], offset[4], mask[4], y[4], bias;
  int32_t first_x, first_w, first_offset, first_bias, first_mask, first_y;
};

}  // namespace

Result<VulkanKernelPtr> make_deform(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t) {
  if (variant_of(schedule) != "slabs")
    return Error{Reason::backend_lacks_variant, "the Vulkan backend has no deform variant '" + variant_of(schedule) + "'"};
  SPARKLE_TRY(fp16, in_fp16(stage, shop));
  const auto& p = get<DeformParams>(stage.params);
  const TensorDesc &x = stage.inputs[0], &w = stage.inputs[1], &offset = stage.inputs[2], &y = stage.outputs[0];
  auto kernel = std::make_unique<VulkanKernel>(stage);
  if (y.elements() == 0) return kernel;
  const int64_t pixels = y.shape[0] * y.shape[2] * y.shape[3], taps = p.filter[0] * p.filter[1];
  const int64_t inner = x.shape[1] / p.groups, outer = y.shape[1] / p.groups;
  const int64_t filter_tiles = (outer + kFilters - 1) / kFilters;
  const int64_t workgroups = (pixels + kPixels - 1) / kPixels * filter_tiles * p.groups;
  bool near = pixels < INT32_MAX - kPixels && inner * taps < INT32_MAX / 2 && workgroups <= INT32_MAX;
  for (const auto* list : {&stage.inputs, &stage.outputs})
    for (const TensorDesc& desc : *list) near = near && extent(desc.shape, desc.layout) <= INT32_MAX;
  if (!near) return too_far("deform");
  DeformRecord r{};
  const auto small = [](int64_t value) { return static_cast<int32_t>(value); };
  r.pixels = small(pixels), r.depth = small(inner * taps), r.inner = small(inner), r.outer = small(outer);
  r.height = small(x.shape[2]), r.width = small(x.shape[3]), r.taps = small(taps);
  r.columns = divisor(y.shape[3]), r.rows = divisor(y.shape[2]), r.channels = divisor(inner);
  r.filter_columns = divisor(p.filter[1]), r.offset_channels = divisor(x.shape[1] / p.offset_groups);
  r.filter_tiles = divisor(filter_tiles), r.groups = divisor(p.groups);
  for (size_t i = 0; i < 2; ++i)
    r.stride[i] = small(p.stride[i]), r.dilation[i] = small(p.dilation[i]), r.pad[i] = small(p.pad_begin[i]);
  Dispatch d;
  const auto operand = [&](int number, const TensorDesc& desc, int32_t* strides, int32_t& first) {
    for (int i = 0; i < desc.shape.size(); ++i) strides[i] = small(desc.layout.strides[i]);
    first = small(before_first(desc));
    d.addresses.push_back({number, -before_first(desc) * size_of(desc.dtype)});
  };
  const int inputs = static_cast<int>(stage.inputs.size());
  operand(0, x, r.x, r.first_x);
  operand(1, w, r.w, r.first_w);
  operand(2, offset, r.offset, r.first_offset);
  if (p.bias) operand(3, stage.inputs[3], &r.bias, r.first_bias);
  else d.addresses.push_back({0, 0});
  if (p.mask) operand(inputs - 1, stage.inputs.back(), r.mask, r.first_mask);
  else d.addresses.push_back({0, 0});
  operand(inputs, y, r.y, r.first_y);

  const std::string shader = shader_for("deform", fp16);
  PipelineRequest request;
  request.shader = shader;
  request.constants = {kThreads, 1, 1, p.bias, p.mask};
  SPARKLE_TRY(pipeline, shop.pipelines->get(request));
  SPARKLE_TRY(record, shop.upload(&r, sizeof r));
  d.pipeline = pipeline;
  d.groups = flat_groups(workgroups);
  d.push(record->address());
  d.push(static_cast<uint32_t>(workgroups));
  kernel->dispatches.push_back(std::move(d));
  kernel->records.push_back(std::move(record));
  return kernel;
}

}  // namespace sparkle::vulkan
