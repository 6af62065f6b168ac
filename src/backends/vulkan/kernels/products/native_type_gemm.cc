#include "backends/vulkan/kernels/products/native_type_gemm.h"

#include <algorithm>

#include "backends/vulkan/shaders/gemm_constants.h"
#include "backends/vulkan/kernels/products/gemm_record.h"
#include "families/gemm/gemm.h"
#include "families/gemm/gemm_tiles.h"

namespace sparkle::vulkan {
namespace {

constexpr int64_t kMostGroups = 65535;  // along z on every device

// As in glsl/gemm_native_type.comp: factors in double precision behind the record, whose own are f32.
struct NativeTypeRecord {
  GemmRecord product;
  double alpha, a, b;
};

const char* shader_of(DType type, bool factor) {
  if (type == DType::f64) return "gemm_doubles";
  if (factor) return size_of(type) == 8 ? "gemm_pairs_factor" : "gemm_words_factor";
  return size_of(type) == 8 ? "gemm_pairs" : "gemm_words";
}

}  // namespace

Result<VulkanKernelPtr> make_native_type_gemm(const Stage& stage, const TileSchedule& tile, const Workshop& shop) {
  const TensorDesc& y = stage.outputs[0];
  const auto& params = get<GemmParams>(stage.params);
  const Epilogue& e = params.epilogue;
  const bool is_signed = y.dtype == DType::i32 || y.dtype == DType::i64, factor = y.dtype != DType::f64 && e.alpha != 1,
             doubles = y.dtype == DType::f64 || factor,
             mixed = std::any_of(stage.inputs.begin(), stage.inputs.end(), [&](const auto& d) { return d.dtype != y.dtype; });
  if (mixed || tile.variant != kNativeType || (doubles && !shop.context->features().f64))
    return Error{Reason::type_not_served,
                 "the Vulkan product kernels do not support " + std::string(name_of(y.dtype)) + " here; use --device cpu"};
  SPARKLE_TRY(g, gemm_record(stage));
  auto kernel = std::make_unique<VulkanKernel>(stage);
  if (y.elements() == 0) return kernel;
  PipelineRequest request;
  request.shader = shader_of(y.dtype, factor);
  request.constants = {static_cast<uint32_t>(tile_needs(tile).threads), 1, 1};
  set(request, e);
  using enum GemmConstant;
  set(request, {{kM, tile.m},
                {kN, tile.n},
                {kK, tile.k},
                {kThreadM, tile.thread_m},
                {kThreadN, tile.thread_n},
                {kPad, tile.pad},
                {kSigned, is_signed}});
  SPARKLE_TRY(pipeline, shop.pipelines->get(request));
  const NativeTypeRecord record{g, e.alpha, e.a, e.b};
  SPARKLE_TRY(buffer, shop.upload(&record, doubles ? sizeof record : sizeof g));
  const int scale = 2, bias = scale + e.scale, residual = bias + e.bias;
  const auto where = [](bool there, int input) { return Address{there ? input : 0}; };
  const auto groups = flat_groups(int64_t{groups_for(g.m, tile.m)} * groups_for(g.n, tile.n));
  const int64_t instances = int64_t{1} * g.instances[0] * g.instances[1] * g.instances[2] * g.instances[3];
  for (int64_t first = 0; first < instances; first += kMostGroups) {
    Dispatch d;
    d.pipeline = pipeline;
    d.groups = groups;
    d.groups[2] = static_cast<uint32_t>(std::min(instances - first, kMostGroups));
    d.addresses = {{0},
                   {1},
                   {static_cast<int>(stage.inputs.size())},
                   where(e.scale, scale),
                   where(e.bias, bias),
                   where(e.residuals() > 0, residual),
                   where(e.residuals() > 1, residual + 1)};
    d.push(buffer->address());
    d.push(static_cast<int32_t>(first));
    d.after_previous = first == 0;
    kernel->dispatches.push_back(std::move(d));
  }
  kernel->records.push_back(std::move(buffer));
  return kernel;
}

}  // namespace sparkle::vulkan
