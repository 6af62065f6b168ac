// The sample family on Vulkan: a thread makes some channels of one output position, so that its taps are found once for them.
// Neighbouring threads take neighbours along whichever of channels and columns is innermost in memory.
#include "families/sample/sample.h"

#include <algorithm>

#include "backends/vulkan/kernels/real_types.h"
#include "backends/vulkan/kernels/moves/chunks.h"

namespace sparkle::vulkan {
namespace {

constexpr int kThreads = 64;
constexpr int64_t kChannels = 4;  // of a thread at most
constexpr int kSpatial = 3;
// Positions outside are told apart by numbers of up to twice an axis.
constexpr int64_t kLongest = 1 << 29;

// As in glsl/sample.comp.
struct SampleRecord {
  uint32_t count;
  int32_t rank, channel_axis, channels, groups;
  int32_t first_x, first_grid, first_y;
  Divisor size[5];
  int32_t x[5], grid[5], y[5];
  int32_t next_x, next_y, next_coordinate;
  int32_t elements[kSpatial], strides[kSpatial];
};

}  // namespace

Result<VulkanKernelPtr> make_sample(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t) {
  if (variant_of(schedule) != "positions")
    return Error{Reason::backend_lacks_variant, "the Vulkan backend has no sample variant '" + variant_of(schedule) + "'"};
  SPARKLE_TRY(fp16, in_fp16(stage, shop));
  const auto& p = get<SampleParams>(stage.params);
  const TensorDesc &x = stage.inputs[0], &grid = stage.inputs[1], &y = stage.outputs[0];
  const int spatial = x.shape.size() - 2;
  if (spatial < 1 || spatial > kSpatial)
    return Error{Reason::layout_not_served, "the Vulkan sample kernels take one to three spatial axes"};
  auto kernel = std::make_unique<VulkanKernel>(stage);
  if (x.elements() == 0 || y.elements() == 0) return kernel;
  SampleRecord r{};
  const int64_t channels = y.shape[1], groups = (channels + kChannels - 1) / kChannels;
  int64_t count = y.shape[0] * groups;
  bool near = true;
  for (int i = 0; i < spatial; ++i) {
    count *= y.shape[2 + i];
    near = near && x.shape[2 + i] < kLongest;
    r.elements[kSpatial - spatial + i] = static_cast<int32_t>(x.shape[2 + i]);
    r.strides[kSpatial - spatial + i] = static_cast<int32_t>(x.layout.strides[2 + i]);
  }
  for (const TensorDesc* desc : {&x, &grid, &y}) near = near && extent(desc->shape, desc->layout) <= INT32_MAX;
  if (!near || count > INT32_MAX) return too_far("sample");
  r.count = static_cast<uint32_t>(count);
  r.channels = static_cast<int32_t>(channels);
  r.groups = static_cast<int32_t>(groups);
  r.first_x = static_cast<int32_t>(before_first(x));
  r.first_grid = static_cast<int32_t>(before_first(grid));
  r.first_y = static_cast<int32_t>(before_first(y));
  r.next_x = static_cast<int32_t>(groups * x.layout.strides[1]);
  r.next_y = static_cast<int32_t>(groups * y.layout.strides[1]);
  r.next_coordinate = static_cast<int32_t>(grid.layout.strides[spatial + 1]);
  r.channel_axis = -1;
  const auto add = [&](int axis) {
    const int64_t size = axis == 1 ? groups : y.shape[axis];
    if (size == 1) return;
    const int i = r.rank++;
    if (axis == 1) r.channel_axis = i;
    r.size[i] = divisor(size);
    r.x[i] = axis < 2 ? static_cast<int32_t>(x.layout.strides[axis]) : 0;
    if (axis != 1) r.grid[i] = static_cast<int32_t>(grid.layout.strides[axis == 0 ? 0 : axis - 1]);
    r.y[i] = static_cast<int32_t>(y.layout.strides[axis]);
  };
  const bool channels_first = std::abs(y.layout.strides[1]) <= std::abs(y.layout.strides[spatial + 1]);
  if (channels_first) add(1);
  for (int axis = spatial + 1; axis >= 2; --axis) add(axis);
  if (!channels_first) add(1);
  add(0);

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
  d.groups = groups_of_threads(count, kThreads);
  const auto address = [&](int operand, const TensorDesc& desc) { return Address{operand, -before_first(desc) * element}; };
  d.addresses = {address(0, x), address(1, grid), address(2, y)};
  d.push(record->address());
  kernel->dispatches.push_back(std::move(d));
  kernel->records.push_back(std::move(record));
  return kernel;
}

}  // namespace sparkle::vulkan
