// The pool family on CUDA.
#include "families/pool/pool.h"

#include "backends/cuda/stages/windows.h"
#include "families/loops/chunk_move.h"

namespace sparkle::cuda {

Result<CudaKernelPtr> make_pool(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t) {
  const std::string& variant = variant_of(schedule);
  const bool wide = variant == "vectors", positions = stage.outputs.size() > 1;
  if (!wide && variant != "naive")
    return Error{Reason::backend_lacks_variant, "the CUDA backend has no pool variant '" + variant + "'"};
  if (wide && (positions || !channels_in_vec4(stage.inputs[0]) || !channels_in_vec4(stage.outputs[0])))
    return Error{Reason::layout_not_served,
                 "the pool variant 'vectors' needs channels in multiples of four side by side, and no positions"};
  const DType type = stage.inputs[0].dtype;
  const auto& p = get<PoolParams>(stage.params);
  const bool bytes = (type == DType::u8 || type == DType::i8) && p.kind == PoolKind::max && !wide;
  if (type != stage.outputs[0].dtype || (!bytes && type != DType::f32 && type != DType::f16 && type != DType::bf16))
    return Error{Reason::type_not_served, "the CUDA pool kernels compute on f32, f16 and bf16, and maxima of bytes"};
  auto kernel = std::make_unique<CudaKernel>(stage);
  if (stage.outputs[0].elements() == 0) return kernel;
  SPARKLE_TRY(r, window_record(stage, p.window, wide ? 4 : 1));
  r.kind = static_cast<uint8_t>(p.kind), r.count_pad = p.count_pad, r.power = static_cast<int32_t>(p.p);
  if (positions) {
    const FeatureMap i = feature_map(stage.outputs[1]);
    set_strides(r.i_strides, i);
    r.i_channel = static_cast<int32_t>(i.channel_stride);
  }
  SPARKLE_TRY(launch, launch_of(shop, wide ? "sparkle_pool_4" : "sparkle_pool_1", r, blocks_for(r.count, kWindowThreads),
                                kWindowThreads));
  launch.addresses = {{offsetof(WindowRecord, x), 0, 0}, {offsetof(WindowRecord, y), 1, 0}};
  if (positions) launch.addresses.push_back({offsetof(WindowRecord, positions), 2, 0});
  kernel->launches.push_back(std::move(launch));
  return kernel;
}

}  // namespace sparkle::cuda
