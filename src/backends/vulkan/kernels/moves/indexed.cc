#include "backends/vulkan/kernels/moves/indexed.h"

#include <algorithm>

#include "backends/vulkan/kernels/moves/chunks.h"
#include "families/values/element.h"

namespace sparkle::vulkan {
namespace {

// As in glsl/indexed_chunks.comp.
struct IndexedRecord {
  uint32_t value[4];
  uint32_t count;
  int32_t rank, first_x, first_y;
  ChunkAxes axes;
  int32_t table[kMaxRank];
};

}  // namespace

Result<VulkanKernelPtr> make_indexed(const Stage& stage, const Workshop& shop, const std::vector<IndexedAxis>& axes,
                                     double value) {
  const TensorDesc &x = stage.inputs[0], &y = stage.outputs[0];
  auto kernel = std::make_unique<VulkanKernel>(stage);
  if (y.elements() == 0) return kernel;
  const int64_t element = size_of(y.dtype);
  std::vector<ChunkAxis> all;
  for (int i = 0; i < y.shape.size(); ++i)
    all.push_back({y.shape[i], x.layout.strides[i] * element, y.layout.strides[i] * element, 0,
                   axes[static_cast<size_t>(i)].identity ? -1 : i});
  const ChunkMove move = chunk_move(std::move(all), element, x.layout.offset * element, y.layout.offset * element);
  if (!move.fits_31_bits() || extent(x.shape, x.layout) > INT32_MAX) return too_far(name_of(stage.family()));

  IndexedRecord r{};
  for (size_t i = 0; i < sizeof r.value; i += static_cast<size_t>(element))
    store_element(y.dtype, value, reinterpret_cast<std::byte*>(r.value) + i);
  r.count = static_cast<uint32_t>(move.count());
  r.rank = static_cast<int32_t>(move.axes.size());
  r.axes = chunk_axes(move.axes);
  std::vector<int32_t> offsets;
  int64_t lowest = 0;  // place in x that an axis' tables or strides lead to
  for (size_t i = 0; i < move.axes.size(); ++i) {
    const ChunkAxis& a = move.axes[i];
    r.table[i] = -1;
    if (a.axis < 0) {
      lowest += std::min<int64_t>(0, (a.size - 1) * a.x);
      continue;
    }
    r.table[i] = static_cast<int32_t>(offsets.size());
    int64_t least = 0;
    for (const int64_t index : axes[static_cast<size_t>(a.axis)].index) {
      least = std::min(least, index < 0 ? 0 : index * a.x);
      offsets.push_back(index < 0 ? kNowhere : static_cast<int32_t>(index * a.x));
    }
    lowest += least;
  }
  r.first_x = static_cast<int32_t>(-lowest);
  r.first_y = static_cast<int32_t>(-move.lowest_y());
  if (offsets.empty()) offsets.push_back(0);
  SPARKLE_TRY(pipeline, chunk_pipeline(shop, "indexed_chunks", move.bytes, kChunkThreads));
  SPARKLE_TRY(record, shop.upload(&r, sizeof r));
  SPARKLE_TRY(table, shop.upload(offsets.data(), static_cast<int64_t>(offsets.size()) * 4));
  Dispatch d;
  d.pipeline = pipeline;
  d.groups = groups_for_chunks(move.count());
  d.addresses = {{0, lowest * move.bytes}, {1, move.lowest_y() * move.bytes}};
  d.push(record->address());
  d.push(table->address());
  kernel->dispatches.push_back(std::move(d));
  kernel->records = {std::move(record), std::move(table)};
  return kernel;
}

}  // namespace sparkle::vulkan
