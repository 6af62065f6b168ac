// The gemm family on Vulkan: every sum of products, by one of the shaders that its variants name.
#include <cstring>

#include "backends/vulkan/kernels/products/gemm_product.h"
#include "backends/vulkan/kernels/products/integer_sums.h"
#include "backends/vulkan/kernels/products/native_type_gemm.h"
#include "backends/vulkan/kernels/real_types.h"
#include "families/values/element.h"
#include "families/gemm/gemm.h"
#include "families/gemm/gemm_tiles.h"
#include "families/gemm/scalar_unit.h"
#include "families/integers/integers.h"

namespace sparkle::vulkan {
namespace {

std::array<Address, 7> addresses_of(const Stage& stage, const Epilogue& e) {
  const int scale = 2, bias = scale + e.scale, first = bias + e.bias, residuals = e.residuals_before + e.residuals_after;
  const int y = static_cast<int>(stage.inputs.size());
  return {{{0},
           {1},
           {y},
           {e.scale ? scale : 0},
           {e.bias ? bias : 0},
           {residuals > 0 ? first : 0},
           {residuals > 1 ? first + 1 : 0}}};
}

// Weights as packed_product() says, in 16 bits where they are given in such or the product's operands are rounded.
struct PackedWeights {
  PackedProduct p;
  int64_t offset;
  DType given, kept;

  void operator()(const std::byte* from, std::byte* to, Executor& executor) const {
    const GemmRecord& g = p.record;
    const int64_t size = size_of(kept), step = size_of(given);
    parallel_for(executor, static_cast<int>(p.matrices), [&](int matrix, int) {
      int64_t origin = 0, left = matrix;
      for (int i = 3; i >= 0; --i) {
        if (g.w_instance[i] == 0) continue;
        origin += left % g.instances[i] * g.w_instance[i];
        left /= g.instances[i];
      }
      std::byte* out = to + matrix * p.k_padded * g.n_padded * size;
      std::memset(out, 0, static_cast<size_t>(p.k_padded * g.n_padded * size));
      int64_t k = 0;
      for (int t = 0; t < g.filter_size[0]; ++t)
        for (int r = 0; r < g.filter_size[1]; ++r)
          for (int s = 0; s < g.filter_size[2]; ++s)
            for (int c = 0; c < g.filter_size[3]; ++c, ++k) {
              std::byte* row = out + (k / p.run * g.n_padded * p.run + k % p.run) * size;
              const std::byte* at = from + step * (offset + origin + c * int64_t{g.w_strides[3]} + t * int64_t{g.w_strides[0]} +
                                                   r * int64_t{g.w_strides[1]} + s * int64_t{g.w_strides[2]});
              for (int64_t n = 0; n < g.n; ++n) {
                const std::byte* weight = at + step * n * g.w_filter_stride;
                std::byte* place = row + n * p.run * size;
                if (given != kept) store_element(kept, load_element(given, weight), place);
                else if (kept == DType::f16) std::memcpy(place, weight, 2);
                else std::memcpy(place, weight, 4);
              }
            }
    });
  }
};

}  // namespace

Result<VulkanKernelPtr> make_gemm(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t constants) {
  const auto* tile = get_if<TileSchedule>(&schedule);
  if (!tile) return Error{Reason::backend_lacks_variant, "The gemm kernels for Vulkan need a tile schedule."};
  if (is_integer(stage.inputs)) return make_integer_gemm(stage, *tile, shop, constants);
  if (tile->variant == kNativeType) return make_native_type_gemm(stage, *tile, shop);
  SPARKLE_TRY(fp16, in_fp16(stage, shop));
  const auto& params = get<GemmParams>(stage.params);
  const bool fragments = on_fragments(*tile), rounded = fragments || tile->variant == "half_sums";
  if (params.operands != (rounded ? OperandType::f16 : OperandType::own))
    return Error{
        Reason::type_not_served,
        "Of the gemm kernels for Vulkan only 'half_sums' and those on matrix units round their operands, to f16 and always."};
  SPARKLE_TRY(g, gemm_record(stage));
  auto kernel = std::make_unique<VulkanKernel>(stage);
  if (g.m == 0 || g.n == 0 || stage.outputs[0].elements() == 0) return kernel;

  Product product;
  product.record = g;
  product.tile = *tile;
  product.epilogue = params.epilogue;
  product.fp16 = fp16;
  product.operands = addresses_of(stage, params.epilogue);
  SPARKLE_TRY(post_op, post_op_of(stage, *shop.context));
  product.post_op = std::move(post_op);
  if (tile->variant != "naive" && tile->variant != "groups" && tile->variant != "halo") {
    const TensorDesc& y = stage.outputs[0];
    const int32_t wide = fragments && fp16 ? 8 : 4;
    product.vectors = in_vectors(wide, stage.inputs[0], g.x_strides, g.channel[0], g.filter_size[3]) &&
                      in_vectors(wide, stage.inputs[0], g.x_instance, 1, wide);
    product.stores = is_vec4(y, g.y_strides, g.channel[1], g.n) && is_vec4(y, g.y_instance, 1, 4);
    product.packed = constants >> 1 & 1;
    product.scalar = tile->unit == kScalarUnit;
    if (product.scalar) product.vectors = product.stores = false;
  }
  if (product.packed) {
    SPARKLE_TRY(packed, packed_product(g, *tile));
    packed.run = !fragments ? 1 : fp16 ? 8 : 4;  // what a thread loads at once
    product.record = packed.record;
    const TensorDesc& w = stage.inputs[1];
    std::string key = "vulkan.gemm:" + std::to_string(packed.record.n_padded) + "," + std::to_string(packed.k_padded) + ":" +
                      w.shape.to_string() + "@" + w.layout.strides.to_string() + "+" + std::to_string(w.layout.offset) + ":";
    for (int i = 0; i < 4; ++i) key += std::to_string(g.instances[i]) + "x" + std::to_string(g.w_instance[i]) + ",";
    key += params.loader == Loader::dense ? "dense" : "window";
    const DType kept = rounded || fp16 ? DType::f16 : DType::f32;
    if (kept != w.dtype) key += ",f16";
    if (packed.run > 1) key += ",runs of " + std::to_string(packed.run);
    kernel->packings.push_back(
        {1, packed.elements() * size_of(kept), key, PackedWeights{packed, w.layout.offset, w.dtype, kept}});
  }
  SPARKLE_CHECK(add_product(*kernel, shop, product));
  return kernel;
}

}  // namespace sparkle::vulkan
