// The sample family on Vulkan: families/sample/sample_gpu.h says which thread makes what.
#include "families/sample/sample.h"

#include "backends/vulkan/kernels/real_types.h"
#include "backends/vulkan/kernels/moves/chunks.h"
#include "families/sample/sample_gpu.h"

namespace sparkle::vulkan {
namespace {

constexpr int kThreads = 64;

// As in glsl/sample.comp.
struct SampleRecord {
  uint32_t count;
  int32_t rank, channel_axis, channels, groups;
  int32_t first_x, first_grid, first_y;
  Divisor size[5];
  int32_t x[5], grid[5], y[5];
  int32_t next_x, next_y, next_coordinate;
  int32_t elements[kSampleSpatial], strides[kSampleSpatial];
};

}  // namespace

Result<VulkanKernelPtr> make_sample(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t) {
  if (variant_of(schedule) != "positions")
    return Error{Reason::backend_lacks_variant, "the Vulkan backend has no sample variant '" + variant_of(schedule) + "'"};
  SPARKLE_TRY(fp16, in_fp16(stage, shop));
  const auto& p = get<SampleParams>(stage.params);
  const TensorDesc &x = stage.inputs[0], &grid = stage.inputs[1], &y = stage.outputs[0];
  const int spatial = x.shape.size() - 2;
  if (spatial < 1 || spatial > kSampleSpatial)
    return Error{Reason::layout_not_served, "the Vulkan sample kernels take one to three spatial axes"};
  auto kernel = std::make_unique<VulkanKernel>(stage);
  if (x.elements() == 0 || y.elements() == 0) return kernel;
  const SampleWalk walk = sample_walk(stage);
  if (!walk.fits_31_bits) return too_far("sample");
  SampleRecord r{};
  r.count = static_cast<uint32_t>(walk.count);
  r.channels = static_cast<int32_t>(y.shape[1]);
  r.groups = static_cast<int32_t>(walk.groups);
  r.first_x = static_cast<int32_t>(before_first(x));
  r.first_grid = static_cast<int32_t>(before_first(grid));
  r.first_y = static_cast<int32_t>(before_first(y));
  r.next_x = static_cast<int32_t>(walk.groups * x.layout.strides[1]);
  r.next_y = static_cast<int32_t>(walk.groups * y.layout.strides[1]);
  r.next_coordinate = static_cast<int32_t>(grid.layout.strides[spatial + 1]);
  r.channel_axis = walk.channel_axis;
  for (const SampleWalk::Axis& axis : walk.axes) {
    const int i = r.rank++;
    r.size[i] = divisor(axis.size);
    r.x[i] = static_cast<int32_t>(axis.x), r.grid[i] = static_cast<int32_t>(axis.grid);
    r.y[i] = static_cast<int32_t>(axis.y);
  }
  for (size_t i = 0; i < walk.elements.size(); ++i) {
    r.elements[i] = static_cast<int32_t>(walk.elements[i]);
    r.strides[i] = static_cast<int32_t>(walk.strides[i]);
  }

  const std::string shader = shader_for("sample", fp16);
  PipelineRequest request;
  request.shader = shader;
  request.constants = {kThreads,
                       1,
                       1,
                       static_cast<uint32_t>(p.mode),
                       static_cast<uint32_t>(p.padding),
                       p.align_corners,
                       static_cast<uint32_t>(spatial)};
  SPARKLE_TRY(pipeline, shop.pipelines->get(request));
  SPARKLE_TRY(record, shop.upload(&r, sizeof r));
  const int64_t element = size_of(y.dtype);
  Dispatch d;
  d.pipeline = pipeline;
  d.groups = groups_of_threads(walk.count, kThreads);
  const auto address = [&](int operand, const TensorDesc& desc) { return Address{operand, -before_first(desc) * element}; };
  d.addresses = {address(0, x), address(1, grid), address(2, y)};
  d.push(record->address());
  kernel->dispatches.push_back(std::move(d));
  kernel->records.push_back(std::move(record));
  return kernel;
}

}  // namespace sparkle::vulkan
