// The gemm family on Vulkan: every sum of products, by one of the shaders that its variants name.
#include <bit>
#include <cstring>

#include "backends/vulkan/gemm_record.h"
#include "backends/vulkan/integer_sums.h"

namespace sparkle::vulkan {
namespace {

constexpr uint32_t kMostGroups = 65535;  // along y and z on every device

int64_t round_up(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

std::vector<uint32_t> epilogue_constants(const Epilogue& e) {
  return {static_cast<uint32_t>(e.activation), e.scale, e.bias, static_cast<uint32_t>(e.residuals_before),
          static_cast<uint32_t>(e.residuals_after)};
}

// x, w, y, scale, bias, residuals: those that are not there stand for x.
std::vector<Address> addresses_of(const Stage& stage, const Epilogue& e) {
  const int scale = 2, bias = scale + e.scale, first = bias + e.bias, residuals = e.residuals_before + e.residuals_after;
  const int y = static_cast<int>(stage.inputs.size());
  return {{0}, {1}, {y}, {e.scale ? scale : 0}, {e.bias ? bias : 0}, {residuals > 0 ? first : 0}, {residuals > 1 ? first + 1 : 0}};
}

// Weights as [instance][k][n_padded], zeros beyond k and n.
struct PackedWeights {
  GemmRecord g;
  TensorDesc w;
  int64_t matrices, k_padded;

  void operator()(const std::byte* from, std::byte* to, Executor& executor) const {
    const auto* source = reinterpret_cast<const float*>(from) + w.layout.offset;
    auto* target = reinterpret_cast<float*>(to);
    parallel_for(executor, static_cast<int>(matrices), [&](int matrix, int) {
      int64_t origin = 0;
      int64_t left = matrix;
      for (int i = 3; i >= 0; --i) {
        if (g.w_instance[i] == 0) continue;
        origin += left % g.instances[i] * g.w_instance[i];
        left /= g.instances[i];
      }
      float* out = target + matrix * k_padded * g.n_padded;
      std::memset(out, 0, static_cast<size_t>(k_padded * g.n_padded) * 4);
      int64_t k = 0;
      for (int t = 0; t < g.filter[0]; ++t)
        for (int r = 0; r < g.filter[1]; ++r)
          for (int s = 0; s < g.filter[2]; ++s)
            for (int c = 0; c < g.filter[3]; ++c, ++k) {
              const float* at = source + origin + c * int64_t{g.w_pitch[1]} + t * int64_t{g.w_pitch[2]} +
                                r * int64_t{g.w_pitch[3]} + s * int64_t{g.w_pitch[4]};
              for (int64_t n = 0; n < g.n; ++n) out[k * g.n_padded + n] = at[n * g.w_pitch[0]];
            }
    });
  }
};

void append(std::vector<uint32_t>& to, std::initializer_list<int64_t> values) {
  for (const int64_t v : values) to.push_back(static_cast<uint32_t>(v));
}

}  // namespace

Result<VulkanKernelPtr> make_gemm(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t constants) {
  const auto* tile = std::get_if<TileSchedule>(&schedule);
  if (!tile) return Error{Reason::backend_lacks_variant, "the gemm kernels for Vulkan need a tile schedule"};
  if (is_integer(stage.inputs)) return make_integer_gemm(stage, *tile, shop, constants);
  for (const auto* list : {&stage.inputs, &stage.outputs})
    for (const TensorDesc& d : *list)
      if (d.dtype != DType::f32) return Error{Reason::type_not_served, "the gemm kernels for Vulkan serve f32"};
  const Epilogue& e = std::get<GemmParams>(stage.params).epilogue;
  SPARKLE_TRY(g, gemm_record(stage));
  auto kernel = std::make_unique<VulkanKernel>(stage);
  if (g.m == 0 || g.n == 0 || stage.outputs[0].elements() == 0) return kernel;
  const int64_t instances = int64_t{1} * g.instances[0] * g.instances[1] * g.instances[2] * g.instances[3];

  PipelineRequest request;
  std::array<uint32_t, 3> groups{1, 1, 1};
  const bool naive = tile->variant == "naive";
  if (naive) {
    request.shader = "gemm_naive";
    append(request.constants, {tile->m, 1, 1});
    for (const uint32_t c : epilogue_constants(e)) request.constants.push_back(c);
    const uint32_t all = groups_for(int64_t{g.m} * g.n, tile->m);
    groups[0] = std::min<uint32_t>(all, 32768);
    groups[1] = groups_for(all, groups[0]);
  } else {
    const bool packed = constants >> 1 & 1;
    g.n_padded = static_cast<int32_t>(round_up(g.n, tile->n));
    const int64_t k_padded = round_up(g.k, tile->k), matrix = k_padded * g.n_padded;
    int64_t matrices = 1;
    for (int i = 3; i >= 0; --i) {
      if (g.w_instance[i] == 0) continue;
      g.packed_instance[i] = static_cast<int32_t>(matrices * matrix);
      matrices *= g.instances[i];
    }
    if (matrices * matrix > INT32_MAX)
      return Error{Reason::layout_not_served, "the weights span more than 2^31 elements; use --device cpu"};
    const TensorDesc& y = stage.outputs[0];
    bool vectors = fours(stage.inputs[0], g.x_pitch, g.channel[0], g.filter[3]) &&
                   fours(stage.inputs[0], g.x_instance, 1, 4);
    bool stores = fours(y, g.y_pitch, g.channel[1], g.n) && fours(y, g.y_instance, 1, 4);
    request.shader = "gemm_tile";
    append(request.constants, {int64_t{tile->m / tile->thread_m} * (tile->n / tile->thread_n), 1, 1});
    for (const uint32_t c : epilogue_constants(e)) request.constants.push_back(c);
    append(request.constants, {tile->m, tile->n, tile->k, tile->thread_m, tile->thread_n, vectors, packed, stores, g.filter[0],
                               g.filter[1], g.filter[2], g.stride[0], g.stride[1], g.stride[2]});
    request.subgroup = static_cast<uint32_t>(tile->subgroup);
    groups[0] = groups_for(g.n, tile->n);
    groups[1] = groups_for(g.m, tile->m);
    if (packed) {
      const TensorDesc& w = stage.inputs[1];
      std::string key = "vulkan.gemm:" + std::to_string(g.n_padded) + "," + std::to_string(k_padded) + ":" +
                        w.shape.to_string() + "@" + w.layout.pitch.to_string() + "+" + std::to_string(w.layout.offset) + ":";
      for (int i = 0; i < 4; ++i) key += std::to_string(g.instances[i]) + "x" + std::to_string(g.w_instance[i]) + ",";
      key += std::get<GemmParams>(stage.params).loader == Loader::dense ? "dense" : "window";
      kernel->packings.push_back({1, matrices * matrix * 4, key, PackedWeights{g, w, matrices, k_padded}});
    }
  }
  if (groups[1] > kMostGroups)
    return Error{Reason::layout_not_served, "the product has more rows than the device can be given at once; split the batch"};
  SPARKLE_TRY(pipeline, shop.pipelines->get(request));
  SPARKLE_TRY(record, shop.upload(&g, sizeof g));
  for (int64_t first = 0; first < instances; first += kMostGroups) {
    Dispatch d;
    d.pipeline = pipeline;
    d.groups = groups;
    d.groups[2] = static_cast<uint32_t>(std::min<int64_t>(instances - first, kMostGroups));
    d.addresses = addresses_of(stage, e);
    d.push(record->address());
    d.push(static_cast<int32_t>(first));
    d.after_previous = false;
    kernel->dispatches.push_back(std::move(d));
  }
  kernel->records.push_back(std::move(record));
  return kernel;
}

}  // namespace sparkle::vulkan
