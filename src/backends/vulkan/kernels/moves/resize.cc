// Sampling at other sizes on Vulkan: the nearest element by tables of places, linear and cubic filters by tables of taps.
#include "families/resize/resize.h"

#include <algorithm>

#include "backends/vulkan/kernels/moves/indexed.h"
#include "backends/vulkan/kernels/real_types.h"
#include "backends/vulkan/kernels/moves/chunks.h"
#include "families/resize/resize_taps.h"

namespace sparkle::vulkan {
namespace {

constexpr int kSlots = 3;  // axes with taps

// As in glsl/resize_taps.comp.
struct TapsRecord {
  uint32_t count;
  int32_t rank, first_x, first_y;
  ChunkAxes axes;
  int32_t slot[kMaxRank];
  int32_t start[kSlots], taps[kSlots];
  float extrapolation;
};

std::vector<ResizeTaps> taps_of(const Stage& stage) {
  std::vector<ResizeTaps> taps;
  const Dims &x = stage.inputs[0].shape, &y = stage.outputs[0].shape;
  for (int i = 0; i < y.size(); ++i) taps.push_back(resize_taps(get<ResizeParams>(stage.params), i, x[i], y[i]));
  return taps;
}

Result<VulkanKernelPtr> make_nearest(const Stage& stage, const Workshop& shop) {
  std::vector<IndexedAxis> axes;
  for (ResizeTaps& t : taps_of(stage)) {
    IndexedAxis axis;
    axis.identity = t.identity;
    if (!t.identity) axis.index = std::move(t.index);
    for (size_t i = 0; i < t.outside.size(); ++i)
      if (t.outside[i]) axis.index[i] = -1;
    axes.push_back(std::move(axis));
  }
  return make_indexed(stage, shop, axes, get<ResizeParams>(stage.params).extrapolation);
}

Result<VulkanKernelPtr> make_taps(const Stage& stage, const Workshop& shop, bool fp16) {
  const TensorDesc &x = stage.inputs[0], &y = stage.outputs[0];
  auto kernel = std::make_unique<VulkanKernel>(stage);
  const std::vector<ResizeTaps> taps = taps_of(stage);
  const int64_t element = size_of(y.dtype);
  std::vector<ChunkAxis> all;
  for (int i = 0; i < y.shape.size(); ++i)
    all.push_back({y.shape[i], x.layout.strides[i] * element, y.layout.strides[i] * element, 0,
                   taps[static_cast<size_t>(i)].identity ? -1 : i});
  // A thread makes up to four elements.
  const ChunkMove move = chunk_move(std::move(all), element, x.layout.offset * element, y.layout.offset * element, 4 * element);
  if (!move.fits_31_bits() || extent(x.shape, x.layout) > INT32_MAX) return too_far("resize");

  TapsRecord r{};
  r.count = static_cast<uint32_t>(move.count());
  r.rank = static_cast<int32_t>(move.axes.size());
  r.axes = chunk_axes(move.axes);
  r.extrapolation = static_cast<float>(get<ResizeParams>(stage.params).extrapolation);
  std::fill(std::begin(r.taps), std::end(r.taps), 1);
  std::vector<int32_t> offsets{0};
  std::vector<float> weights{1};
  int64_t lowest = 0;
  int slots = 0;
  for (size_t i = 0; i < move.axes.size(); ++i) {
    const ChunkAxis& a = move.axes[i];
    r.slot[i] = -1;
    if (a.axis < 0) {
      lowest += std::min<int64_t>(0, (a.size - 1) * a.x);
      continue;
    }
    const ResizeTaps& t = taps[static_cast<size_t>(a.axis)];
    if (slots == kSlots)
      return Error{Reason::filter_not_served,
                   "the Vulkan resize kernels filter up to three axes; resize the others in a step of their own"};
    if (static_cast<int64_t>(offsets.size()) + t.count * a.size > INT32_MAX) return too_far("resize");
    r.slot[i] = slots;
    r.start[slots] = static_cast<int32_t>(offsets.size());
    r.taps[slots] = static_cast<int32_t>(t.count);
    ++slots;
    int64_t least = 0;
    for (size_t k = 0; k < t.index.size(); ++k) {
      const bool outside = !t.outside.empty() && t.outside[k / static_cast<size_t>(t.count)];
      least = std::min(least, t.index[k] * a.x);
      offsets.push_back(outside ? kNowhere : static_cast<int32_t>(t.index[k] * a.x));
      weights.push_back(static_cast<float>(t.weight[k]));
    }
    lowest += least;
  }
  r.first_x = static_cast<int32_t>(-lowest);
  r.first_y = static_cast<int32_t>(-move.lowest_y());
  SPARKLE_TRY(pipeline, chunk_pipeline(shop, shader_for("resize_taps", fp16), move.bytes, kChunkThreads));
  SPARKLE_TRY(record, shop.upload(&r, sizeof r));
  SPARKLE_TRY(from, shop.upload(offsets.data(), static_cast<int64_t>(offsets.size()) * 4));
  SPARKLE_TRY(factors, shop.upload(weights.data(), static_cast<int64_t>(weights.size()) * 4));
  Dispatch d;
  d.pipeline = pipeline;
  d.groups = groups_for_chunks(move.count());
  d.addresses = {{0, lowest * move.bytes}, {1, move.lowest_y() * move.bytes}};
  d.push(record->address());
  d.push(from->address());
  d.push(factors->address());
  kernel->dispatches.push_back(std::move(d));
  kernel->records = {std::move(record), std::move(from), std::move(factors)};
  return kernel;
}

}  // namespace

Result<VulkanKernelPtr> make_resize(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t) {
  const std::string& variant = variant_of(schedule);
  const bool nearest = get<ResizeParams>(stage.params).mode == ResizeMode::nearest;
  if (variant != (nearest ? "units" : "taps"))
    return Error{Reason::backend_lacks_variant, "the Vulkan backend has no resize variant '" + variant + "' for this mode"};
  const bool nothing = stage.inputs[0].elements() == 0 || stage.outputs[0].elements() == 0;
  if (nearest) return nothing ? Result<VulkanKernelPtr>(std::make_unique<VulkanKernel>(stage)) : make_nearest(stage, shop);
  SPARKLE_TRY(fp16, in_fp16(stage, shop));
  return nothing ? Result<VulkanKernelPtr>(std::make_unique<VulkanKernel>(stage)) : make_taps(stage, shop, fp16);
}

}  // namespace sparkle::vulkan
