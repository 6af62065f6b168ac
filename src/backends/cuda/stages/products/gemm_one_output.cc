#include "backends/cuda/stages/products/gemm_one_output.h"

#include "backends/cuda/kernels/gemm_one_output_record.h"
#include "backends/cuda/stages/products/channel_operand.h"
#include "backends/cuda/stages/products/gemm_record.h"

namespace sparkle::cuda {

Result<CudaKernelPtr> make_gemm_one_output(const Stage& stage, const Workshop& shop, uint32_t constants) {
  const auto& params = get<GemmParams>(stage.params);
  const DType type = stage.outputs[0].dtype;
  for (const TensorDesc& d : stage.inputs)
    if (d.dtype != type || params.operands != OperandType::own || size_of(type) > 4 || !is_float(type))
      return Error{Reason::type_not_served, "the CUDA gemm variant 'one_output' multiplies f32, f16 and bf16 as they are"};
  if (params.epilogue.has_post_op())
    return Error{Reason::tail_not_served, "the CUDA gemm kernels have no place for a program behind their sums"};
  auto kernel = std::make_unique<CudaKernel>(stage);
  if (stage.outputs[0].elements() == 0) return kernel;
  SPARKLE_TRY(setup, gemm_setup(stage, 1, size_of(type)));
  GemmOneOutputRecord r;
  r.gemm = setup.record;
  r.gemm.y_type = element_of(type);
  for (size_t i = 0; i < 4; ++i) {
    r.gemm.w_instance[i] = static_cast<int32_t>(setup.filters.instance[i]);
    r.w_strides[i + 1] = static_cast<int32_t>(setup.filters.strides[i]);
  }
  r.w_strides[0] = static_cast<int32_t>(setup.filters.filter);
  r.channels = static_cast<int32_t>(setup.filters.size[3]);
  r.count = static_cast<uint32_t>(stage.outputs[0].elements());
  r.n_by = divisor_of(setup.record.n), r.m_by = divisor_of(setup.record.m);
  const EpiloguePlaces places = epilogue_places(params.epilogue);
  SPARKLE_TRY(launch, launch_of(shop, "sparkle_gemm_one_output_" + std::string(name_of(type)), r,
                                blocks_for(r.count, kOneOutputThreads), kOneOutputThreads));
  const size_t at = offsetof(GemmOneOutputRecord, gemm);
  launch.addresses = {{at + offsetof(GemmRecord, x), 0, 0},
                      {at + offsetof(GemmRecord, w), 1, 0},
                      {at + offsetof(GemmRecord, y), static_cast<int>(stage.inputs.size()), 0}};
  int64_t workspace = 0;
  const auto bind = [&](int operand, size_t place) {
    return operand < 0 ? ok()
                       : add_channel_operand(*kernel, launch, shop, operand, at + place, constants >> operand & 1, workspace);
  };
  SPARKLE_CHECK(bind(places.scale, offsetof(GemmRecord, scale)));
  SPARKLE_CHECK(bind(places.bias, offsetof(GemmRecord, bias)));
  for (size_t i = 0; i < 2; ++i)
    if (places.residual[i] >= 0)
      launch.addresses.push_back({at + offsetof(GemmRecord, residual) + i * sizeof(void*), places.residual[i], 0});
  kernel->workspace = workspace;
  kernel->launches.push_back(std::move(launch));
  return kernel;
}

}  // namespace sparkle::cuda
