#include "backends/vulkan/kernels/moves/one_hot.h"

#include "backends/vulkan/kernels/moves/chunks.h"
#include "families/scatter/scatter.h"

namespace sparkle::vulkan {
namespace {

// As in glsl/one_hot_chunks.comp.
struct OneHotRecord {
  uint32_t count;
  int32_t rank, first_index, first_y, value_stride, axis_size;
  ChunkAxes axes;
  int32_t index[kMaxRank], place[kMaxRank];
};

std::optional<uint32_t> index_kind(DType type) {
  switch (type) {
    case DType::f32: return 0;
    case DType::i32: return 1;
    case DType::u32: return 2;
    case DType::i64: return 3;
    case DType::u64: return 4;
    default: return std::nullopt;
  }
}

}  // namespace

Result<VulkanKernelPtr> make_one_hot(const Stage& stage, const Workshop& shop) {
  const int axis = get<ScatterParams>(stage.params).axis;
  const TensorDesc &indices = stage.inputs[0], &values = stage.inputs[1], &y = stage.outputs[0];
  const auto kind = index_kind(indices.dtype);
  if (!kind)
    return Error{Reason::type_not_served,
                 "the Vulkan scatter kernels take one-hot indices of f32 and of integers of 32 and 64 bits, not " +
                     std::string(name_of(indices.dtype)) + "; use --device cpu"};
  auto kernel = std::make_unique<VulkanKernel>(stage);
  if (y.elements() == 0) return kernel;
  const int64_t element = size_of(y.dtype);
  std::vector<ChunkAxis> axes;
  for (int i = 0; i < y.shape.size(); ++i) {
    const int own = i < axis ? i : i - 1;
    axes.push_back(
        {y.shape[i], 0, y.layout.strides[i] * element, i == axis ? 0 : indices.layout.strides[own], i == axis ? i : -1});
  }
  const ChunkMove move = chunk_move(std::move(axes), element, 0, y.layout.offset * element);
  if (!move.fits_31_bits() || extent(indices.shape, indices.layout) > INT32_MAX / 2) return too_far("scatter");
  OneHotRecord r{};
  int64_t lowest_index = 0;
  for (size_t i = 0; i < move.axes.size(); ++i) {
    const ChunkAxis& a = move.axes[i];
    lowest_index += std::min<int64_t>(0, (a.size - 1) * a.other);
    r.index[i] = static_cast<int32_t>(a.other);
    r.place[i] = a.axis >= 0;
  }
  r.count = static_cast<uint32_t>(move.count());
  r.rank = static_cast<int32_t>(move.axes.size());
  r.first_index = static_cast<int32_t>(-lowest_index);
  r.first_y = static_cast<int32_t>(-move.lowest_y());
  r.value_stride = static_cast<int32_t>(values.layout.strides[0]);
  r.axis_size = static_cast<int32_t>(y.shape[axis]);
  r.axes = chunk_axes(move.axes);
  SPARKLE_TRY(pipeline, chunk_pipeline(shop, "one_hot_chunks", move.bytes, kChunkThreads, {*kind}));
  SPARKLE_TRY(record, shop.upload(&r, sizeof r));
  Dispatch d;
  d.pipeline = pipeline;
  d.groups = groups_for_chunks(move.count());
  d.addresses = {{0, lowest_index * size_of(indices.dtype)}, {1}, {2, move.lowest_y() * move.bytes}};
  d.push(record->address());
  kernel->dispatches.push_back(std::move(d));
  kernel->records.push_back(std::move(record));
  return kernel;
}

}  // namespace sparkle::vulkan
