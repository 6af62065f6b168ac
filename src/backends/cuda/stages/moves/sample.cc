// The sample family on CUDA: families/sample/sample_gpu.h says which thread makes what.
#include "families/sample/sample.h"

#include "backends/cuda/kernels/moves/sample_record.h"
#include "backends/cuda/stages/moves/moves.h"
#include "families/sample/sample_gpu.h"

namespace sparkle::cuda {

Result<CudaKernelPtr> make_sample(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t) {
  if (variant_of(schedule) != "positions")
    return Error{Reason::backend_lacks_variant, "the CUDA backend has no sample variant '" + variant_of(schedule) + "'"};
  const auto& p = get<SampleParams>(stage.params);
  const TensorDesc &x = stage.inputs[0], &grid = stage.inputs[1], &y = stage.outputs[0];
  const int spatial = x.shape.size() - 2;
  if (spatial < 1 || spatial > kSampleSpatial)
    return Error{Reason::layout_not_served, "the CUDA sample kernels take one to three spatial axes"};
  for (const TensorDesc* desc : {&x, &grid, &y})
    if (!is_float(desc->dtype) || desc->dtype == DType::f64)
      return Error{Reason::type_not_served, "the CUDA sample kernels compute in single precision; use --device cpu"};
  auto kernel = std::make_unique<CudaKernel>(stage);
  if (x.elements() == 0 || y.elements() == 0) return kernel;
  const SampleWalk walk = sample_walk(stage);
  if (!walk.fits_31_bits) return too_far("sample");
  SampleRecord r;
  r.count = static_cast<uint32_t>(walk.count);
  r.channels = static_cast<int32_t>(y.shape[1]), r.groups = static_cast<int32_t>(walk.groups);
  r.next_x = walk.groups * x.layout.strides[1], r.next_y = walk.groups * y.layout.strides[1];
  r.next_coordinate = grid.layout.strides[spatial + 1];
  r.channel_axis = walk.channel_axis;
  for (const SampleWalk::Axis& axis : walk.axes) {
    const int i = r.rank++;
    r.size[i] = divisor_of(axis.size);
    r.x_strides[i] = static_cast<int32_t>(axis.x), r.grid_strides[i] = static_cast<int32_t>(axis.grid);
    r.y_strides[i] = static_cast<int32_t>(axis.y);
  }
  for (size_t i = 0; i < walk.elements.size(); ++i) {
    r.elements[i] = static_cast<int32_t>(walk.elements[i]);
    r.strides[i] = static_cast<int32_t>(walk.strides[i]);
  }
  r.mode = static_cast<uint8_t>(p.mode), r.padding = static_cast<uint8_t>(p.padding);
  r.align_corners = p.align_corners, r.spatial = static_cast<uint8_t>(spatial);
  const TensorDesc* operands[] = {&x, &grid, &y};
  for (int i = 0; i < 3; ++i) r.type[i] = static_cast<uint8_t>(operands[i]->dtype);
  SPARKLE_TRY(launch, launch_of(shop, "sparkle_sample_positions", r, blocks_for(walk.count, kSampleThreads), kSampleThreads));
  launch.addresses = {
      {offsetof(SampleRecord, x), 0, 0}, {offsetof(SampleRecord, grid), 1, 0}, {offsetof(SampleRecord, y), 2, 0}};
  kernel->launches.push_back(std::move(launch));
  return kernel;
}

}  // namespace sparkle::cuda
