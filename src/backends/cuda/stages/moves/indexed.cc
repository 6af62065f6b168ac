#include "backends/cuda/stages/moves/indexed.h"

#include "backends/cuda/stages/moves/moves.h"
#include "families/values/element.h"

namespace sparkle::cuda {

Result<CudaKernelPtr> make_indexed(const Stage& stage, const Workshop& shop, const std::vector<IndexedAxis>& axes,
                                   double value) {
  const TensorDesc &x = stage.inputs[0], &y = stage.outputs[0];
  auto kernel = std::make_unique<CudaKernel>(stage);
  if (y.elements() == 0) return kernel;
  const int64_t element = size_of(y.dtype);
  std::vector<ChunkAxis> all;
  for (int i = 0; i < y.shape.size(); ++i)
    all.push_back({y.shape[i], x.layout.strides[i] * element, y.layout.strides[i] * element, 0,
                   axes[static_cast<size_t>(i)].identity ? -1 : i});
  const ChunkMove move = chunk_move(std::move(all), element, x.layout.offset * element, y.layout.offset * element);
  if (!move.fits_31_bits() || extent(x.shape, x.layout) > INT32_MAX) return too_far(name_of(stage.family()));
  IndexedRecord r;
  for (size_t i = 0; i < sizeof r.value; i += static_cast<size_t>(element))
    store_element(y.dtype, value, reinterpret_cast<std::byte*>(r.value) + i);
  r.count = static_cast<uint32_t>(move.count());
  r.axes = move_axes(move.axes);
  std::vector<int32_t> places;
  for (size_t i = 0; i < move.axes.size(); ++i) {
    const ChunkAxis& a = move.axes[i];
    r.start[i] = a.axis < 0 ? -1 : static_cast<int32_t>(places.size());
    if (a.axis < 0) continue;
    for (const int64_t index : axes[static_cast<size_t>(a.axis)].index)
      places.push_back(index < 0 ? kNowhere : static_cast<int32_t>(index * a.x));
  }
  if (places.empty()) places.push_back(0);
  SPARKLE_TRY(table, shop.upload(places.data(), static_cast<int64_t>(places.size()) * 4));
  r.table = reinterpret_cast<const int32_t*>(static_cast<uintptr_t>(table->address()));
  kernel->tables.push_back(std::move(table));
  SPARKLE_TRY(launch, launch_of(shop, "sparkle_indexed_chunks_" + std::to_string(move.bytes), r,
                                blocks_for(move.count(), kMoveThreads * kMoveSteps), kMoveThreads));
  launch.addresses = {{offsetof(IndexedRecord, x), 0, 0}, {offsetof(IndexedRecord, y), 1, 0}};
  kernel->launches.push_back(std::move(launch));
  return kernel;
}

}  // namespace sparkle::cuda
