// Integer stages of the gemm family on Vulkan: tiles by dot products of bytes where the schedule's unit has them, by 32-bit
// arithmetic elsewhere, and one output a thread for what tiles do not support.
#include <cstring>

#include "backends/vulkan/shaders/gemm_constants.h"
#include "backends/vulkan/kernels/products/integer_sums.h"
#include "families/gemm/gemm.h"
#include "families/loops/tile_schedule.h"

namespace sparkle::vulkan {
namespace {

constexpr int64_t kMostGroups = 65535;  // along z on every device

int64_t round_up(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

// Weights as signed bytes [instance][k / 4][n_padded][4], zeros beyond k and n.
struct PackedBytes {
  GemmRecord g;
  TensorDesc w;
  int64_t matrices, k_padded;

  void operator()(const std::byte* from, std::byte* to, Executor& executor) const {
    const auto* source = reinterpret_cast<const uint8_t*>(from) + w.layout.offset;
    const uint8_t flip = w.dtype == DType::u8 ? 0x80 : 0;
    parallel_for(executor, static_cast<int>(matrices), [&](int matrix, int) {
      int64_t origin = 0, left = matrix;
      for (int i = 3; i >= 0; --i) {
        if (g.w_instance[i] == 0) continue;
        origin += left % g.instances[i] * g.w_instance[i];
        left /= g.instances[i];
      }
      auto* out = reinterpret_cast<uint8_t*>(to) + matrix * k_padded * g.n_padded;
      std::memset(out, 0, static_cast<size_t>(k_padded * g.n_padded));
      int64_t k = 0;
      for (int t = 0; t < g.filter_size[0]; ++t)
        for (int r = 0; r < g.filter_size[1]; ++r)
          for (int s = 0; s < g.filter_size[2]; ++s)
            for (int c = 0; c < g.filter_size[3]; ++c, ++k) {
              const uint8_t* at = source + origin + c * int64_t{g.w_strides[3]} + t * int64_t{g.w_strides[0]} +
                                  r * int64_t{g.w_strides[1]} + s * int64_t{g.w_strides[2]};
              for (int64_t n = 0; n < g.n; ++n)
                out[(k / 4 * g.n_padded + n) * 4 + k % 4] = static_cast<uint8_t>(at[n * g.w_filter_stride] ^ flip);
            }
    });
  }
};

void add_packing(VulkanKernel& kernel, GemmRecord& g, const TileSchedule& tile, int64_t matrices) {
  const TensorDesc& w = kernel.stage.inputs[1];
  const int64_t k_padded = round_up(g.k, tile.k);
  std::string key = "vulkan.bytes:" + std::string(name_of(w.dtype)) + std::to_string(g.n_padded) + "," +
                    std::to_string(k_padded) + ":" + w.shape.to_string() + "@" + w.layout.strides.to_string() + "+" +
                    std::to_string(w.layout.offset) + ":";
  for (int i = 0; i < 4; ++i) key += std::to_string(g.instances[i]) + "x" + std::to_string(g.w_instance[i]) + ",";
  key += get<GemmParams>(kernel.stage.params).loader == Loader::dense ? "dense" : "window";
  kernel.packings.push_back({1, matrices * k_padded * g.n_padded, key, PackedBytes{g, w, matrices, k_padded}});
}

}  // namespace

Result<VulkanKernelPtr> make_integer_gemm(const Stage& stage, const TileSchedule& tile, const Workshop& shop,
                                          uint32_t constants) {
  const Epilogue& e = get<GemmParams>(stage.params).epilogue;
  SPARKLE_CHECK(check_integer_operands(stage, e, shop));
  SPARKLE_TRY(g, gemm_record(stage));
  auto kernel = std::make_unique<VulkanKernel>(stage);
  if (stage.outputs[0].elements() == 0) return kernel;
  if (tile.variant == "bytes_naive") {
    SPARKLE_CHECK(add_naive(*kernel, g, e, shop));
    return kernel;
  }
  const TensorDesc &x = stage.inputs[0], &w = stage.inputs[1], &y = stage.outputs[0];
  if (!is_byte(w.dtype)) return Error{Reason::type_not_served, "tiles of integers for Vulkan have weights of 8 bits"};
  const bool packed = constants >> 1 & 1;
  g.n_padded = static_cast<int32_t>(round_up(g.n, tile.n));
  const int64_t matrix = round_up(g.k, tile.k) / 4 * g.n_padded;  // words
  int64_t matrices = 1;
  for (int i = 3; i >= 0; --i) {
    if (g.w_instance[i] == 0) continue;
    g.packed_instance[i] = static_cast<int32_t>(matrices * matrix);
    matrices *= g.instances[i];
  }
  if (matrices * matrix > INT32_MAX)
    return Error{Reason::layout_not_served, "the weights span more than 2^33 bytes; use --device cpu"};

  PipelineRequest request;
  request.shader = tile.variant == "dot_tile" ? "integer_tile_dot" : "integer_tile";
  const bool words = is_vec4(x, g.x_strides, g.channel[0], g.filter_size[3]) && is_vec4(x, g.x_instance, 1, 4);
  const bool stores = is_vec4(y, g.y_strides, g.channel[1], g.n) && is_vec4(y, g.y_instance, 1, 4);
  request.constants = {static_cast<uint32_t>(tile.m / tile.thread_m * (tile.n / tile.thread_n)), 1, 1};
  set_integers(request, stage, e);
  using enum GemmConstant;
  set(request, {{kM, tile.m},
                {kN, tile.n},
                {kK, tile.k},
                {kThreadM, tile.thread_m},
                {kThreadN, tile.thread_n},
                {kVectors, words},
                {kPacked, packed},
                {kStoreVectors, stores},
                {kFilterT, g.filter_size[0]},
                {kFilterR, g.filter_size[1]},
                {kFilterS, g.filter_size[2]},
                {kStrideT, g.stride[0]},
                {kStrideR, g.stride[1]},
                {kStrideS, g.stride[2]}});
  request.subgroup = static_cast<uint32_t>(tile.subgroup);
  const auto groups = flat_groups(int64_t{groups_for(g.m, tile.m)} * groups_for(g.n, tile.n));
  if (packed) add_packing(*kernel, g, tile, matrices);
  SPARKLE_TRY(pipeline, shop.pipelines->get(request));
  SPARKLE_TRY(record, shop.upload(&g, sizeof g));
  const int64_t instances = int64_t{1} * g.instances[0] * g.instances[1] * g.instances[2] * g.instances[3];
  for (int64_t first = 0; first < instances; first += kMostGroups) {
    Dispatch d = integer_dispatch(stage, e, pipeline, *record, static_cast<int32_t>(first));
    d.groups = groups;
    d.groups[2] = static_cast<uint32_t>(std::min<int64_t>(instances - first, kMostGroups));
    kernel->dispatches.push_back(std::move(d));
  }
  kernel->records.push_back(std::move(record));
  return kernel;
}

}  // namespace sparkle::vulkan
