#include "backends/cuda/stages/moves/one_hot.h"

#include "backends/cuda/kernels/moves/scatter_record.h"
#include "backends/cuda/stages/moves/moves.h"
#include "families/scatter/scatter.h"
#include "families/type_set.h"

namespace sparkle::cuda {

Result<CudaKernelPtr> make_one_hot(const Stage& stage, const Workshop& shop) {
  const int axis = get<ScatterParams>(stage.params).axis;
  const TensorDesc &indices = stage.inputs[0], &values = stage.inputs[1], &y = stage.outputs[0];
  const bool numbers = indices.dtype == DType::f32 || (kIntegers.has(indices.dtype) && size_of(indices.dtype) >= 4);
  if (!numbers)
    return Error{Reason::type_not_served,
                 "the CUDA scatter kernels take one-hot indices of f32 and of integers of 32 and 64 bits, not " +
                     std::string(name_of(indices.dtype)) + "; use --device cpu"};
  auto kernel = std::make_unique<CudaKernel>(stage);
  if (y.elements() == 0) return kernel;
  if (extent(y.shape, y.layout) > INT32_MAX || extent(indices.shape, indices.layout) > INT32_MAX || y.elements() > INT32_MAX)
    return too_far("scatter");
  OneHotRecord r;
  std::vector<ChunkAxis> axes;
  for (int i = 0; i < y.shape.size(); ++i) {
    if (y.shape[i] == 1) continue;
    r.place[axes.size()] = i == axis;
    axes.push_back({y.shape[i], i == axis ? 0 : indices.layout.strides[i < axis ? i : i - 1], y.layout.strides[i]});
  }
  if (axes.size() > static_cast<size_t>(kMoveAxes)) return too_far("scatter");
  r.count = static_cast<uint32_t>(y.elements());
  r.axes = move_axes(axes);
  r.value_stride = static_cast<int32_t>(values.layout.strides[0]);
  r.axis_size = static_cast<int32_t>(y.shape[axis]);
  r.type = static_cast<uint8_t>(indices.dtype);
  SPARKLE_TRY(launch, launch_of(shop, "sparkle_one_hot_" + std::to_string(size_of(y.dtype)), r,
                                blocks_for(r.count, kMoveThreads * kMoveSteps), kMoveThreads));
  launch.addresses = {
      {offsetof(OneHotRecord, indices), 0, 0}, {offsetof(OneHotRecord, values), 1, 0}, {offsetof(OneHotRecord, y), 2, 0}};
  kernel->launches.push_back(std::move(launch));
  return kernel;
}

}  // namespace sparkle::cuda
