// The deform family on CUDA: pixels are sampled into shared memory and multiplied there (kernels/moves/deform.cu).
#include "families/deform/deform.h"

#include "backends/cuda/kernels/moves/deform_record.h"
#include "backends/cuda/stages/moves/moves.h"

namespace sparkle::cuda {

Result<CudaKernelPtr> make_deform(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t) {
  if (variant_of(schedule) != "slabs")
    return Error{Reason::backend_lacks_variant, "the CUDA backend has no deform variant '" + variant_of(schedule) + "'"};
  const auto& p = get<DeformParams>(stage.params);
  const TensorDesc &x = stage.inputs[0], &w = stage.inputs[1], &y = stage.outputs[0];
  const DType type = y.dtype;
  const auto is_other = [&](const TensorDesc& desc) { return desc.dtype != type; };
  if (!is_float(type) || type == DType::f64 || std::any_of(stage.inputs.begin(), stage.inputs.end(), is_other))
    return Error{Reason::type_not_served, "the CUDA deform kernels compute fp32, fp16 or bfloat16 alone; use --device cpu"};
  auto kernel = std::make_unique<CudaKernel>(stage);
  if (y.elements() == 0) return kernel;
  const int64_t pixels = y.shape[0] * y.shape[2] * y.shape[3], taps = p.filter[0] * p.filter[1];
  const int64_t inner = x.shape[1] / p.groups, outer = y.shape[1] / p.groups;
  const int64_t filter_tiles = divided(outer, int64_t{kDeformFilters});
  const int64_t blocks = divided(pixels, int64_t{kDeformPixels}) * filter_tiles * p.groups;
  bool near = pixels < INT32_MAX - kDeformPixels && inner * taps < INT32_MAX / 2 && blocks <= INT32_MAX;
  for (const auto* list : {&stage.inputs, &stage.outputs})
    for (const TensorDesc& desc : *list) near = near && extent(desc.shape, desc.layout) <= INT32_MAX;
  if (!near) return too_far("deform");
  DeformRecord r;
  const auto small = [](int64_t value) { return static_cast<int32_t>(value); };
  r.pixels = small(pixels), r.depth = small(inner * taps), r.inner = small(inner), r.outer = small(outer);
  r.height = small(x.shape[2]), r.width = small(x.shape[3]), r.taps = small(taps);
  r.columns = divisor_of(y.shape[3]), r.rows = divisor_of(y.shape[2]), r.channels = divisor_of(inner);
  r.filter_columns = divisor_of(p.filter[1]), r.offset_channels = divisor_of(x.shape[1] / p.offset_groups);
  r.filter_tiles = divisor_of(filter_tiles), r.groups = divisor_of(p.groups);
  for (size_t i = 0; i < 2; ++i)
    r.stride[i] = small(p.stride[i]), r.dilation[i] = small(p.dilation[i]), r.pad[i] = small(p.pad_begin[i]);
  std::vector<KernelLaunch::Address> addresses;
  const auto operand = [&](size_t at, int number, const TensorDesc& desc, int32_t* strides) {
    for (int i = 0; i < desc.shape.size(); ++i) strides[i] = small(desc.layout.strides[i]);
    addresses.push_back({at, number, 0});
  };
  const int inputs = static_cast<int>(stage.inputs.size());
  operand(offsetof(DeformRecord, x), 0, x, r.x_strides);
  operand(offsetof(DeformRecord, w), 1, w, r.w_strides);
  operand(offsetof(DeformRecord, offset), 2, stage.inputs[2], r.offset_strides);
  if (p.bias) operand(offsetof(DeformRecord, bias), 3, stage.inputs[3], &r.bias_stride);
  if (p.mask) operand(offsetof(DeformRecord, mask), inputs - 1, stage.inputs.back(), r.mask_strides);
  operand(offsetof(DeformRecord, y), inputs, y, r.y_strides);
  const std::string name = std::string("sparkle_deform_") + std::string(name_of(type));
  SPARKLE_TRY(launch, launch_of(shop, name, r, blocks_for(blocks, 1), kDeformThreads, kDeformSharedBytes));
  launch.addresses = std::move(addresses);
  kernel->launches.push_back(std::move(launch));
  return kernel;
}

}  // namespace sparkle::cuda
