// The winograd family on Vulkan: tiles of inputs to their points, a product of matrices for each point by the gemm family's
// shaders, and back with the epilogue. Points of all tiles lie in the workspace, in f32: [point][tile][c], then
// [point][tile][k].
#include <cstring>
#include <limits>

#include "backends/vulkan/shaders/gemm_constants.h"
#include "backends/vulkan/kernels/products/gemm_product.h"
#include "backends/vulkan/kernels/real_types.h"
#include "families/values/element.h"
#include "families/gemm/gemm.h"
#include "families/loops/tile_schedule.h"
#include "families/winograd/winograd.h"

namespace sparkle::vulkan {
namespace {

constexpr int kThreads = 64;

// Weights at the points, as packed_product() says.
struct PackedPoints {
  PackedProduct p;
  GemmRecord convolution;
  int64_t offset;
  DType type;  // of the weights
  int tile;

  void operator()(const std::byte* from, std::byte* to, Executor& executor) const {
    const WinogradTransform& t = winograd_transform(tile);
    const GemmRecord& g = convolution;
    const auto weight = [&](int64_t at) {
      return type == DType::f16 ? load_element(type, from + 2 * (offset + at))
                                : static_cast<double>(reinterpret_cast<const float*>(from)[offset + at]);
    };
    const int64_t row = p.record.n_padded, matrix = p.k_padded * row;
    auto* out = reinterpret_cast<float*>(to);
    std::memset(out, 0, static_cast<size_t>(p.elements()) * 4);
    parallel_for(executor, g.filter_size[3], [&](int c, int) {
      for (int64_t k = 0; k < g.n; ++k) {
        const int64_t w = k * g.w_filter_stride + c * int64_t{g.w_strides[3]};
        double rows[3][kMostWinogradPoints];  // filter rows at the points of the second axis
        for (size_t r = 0; r < 3; ++r)
          for (size_t j = 0; j < static_cast<size_t>(t.points); ++j) {
            rows[r][j] = 0;
            for (size_t s = 0; s < 3; ++s)
              rows[r][j] += t.filter[j][s] *
                            weight(w + static_cast<int64_t>(r) * g.w_strides[1] + static_cast<int64_t>(s) * g.w_strides[2]);
          }
        for (size_t i = 0; i < static_cast<size_t>(t.points); ++i)
          for (size_t j = 0; j < static_cast<size_t>(t.points); ++j) {
            double value = 0;
            for (size_t r = 0; r < 3; ++r) value += t.filter[i][r] * rows[r][j];
            out[static_cast<int64_t>(i * static_cast<size_t>(t.points) + j) * matrix + c * row + k] = static_cast<float>(value);
          }
      }
    });
  }
};

// One thread for each of `count`.
Dispatch over(const Pipeline* pipeline, int64_t count, const std::array<Address, 7>& operands, VkDeviceAddress record,
              int32_t steps) {
  Dispatch d;
  d.pipeline = pipeline;
  d.groups = groups_of_threads(count, kThreads);
  d.addresses.assign(operands.begin(), operands.end());
  d.push(record);
  d.push(int32_t{0});
  d.push(int32_t{1});
  d.push(steps);
  return d;
}

// A stage of the gemm family with the same operands: its record says all of the convolution.
Stage convolution_of(const Stage& stage) {
  const auto& p = get<WinogradParams>(stage.params);
  Stage same = stage;
  GemmParams params;
  params.window = p.window;
  params.epilogue = p.epilogue;
  same.params = params;
  return same;
}

}  // namespace

Result<VulkanKernelPtr> make_winograd(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t constants) {
  const auto* tile = get_if<TileSchedule>(&schedule);
  const auto& params = get<WinogradParams>(stage.params);
  if (!tile || params.tile > 4)
    return Error{Reason::backend_lacks_variant, "The winograd kernels for Vulkan need a tile schedule and tiles of 2 or 4."};
  SPARKLE_TRY(fp16, in_fp16(stage, shop));
  SPARKLE_TRY(g, gemm_record(convolution_of(stage)));
  auto kernel = std::make_unique<VulkanKernel>(stage);
  if (g.m == 0 || g.n == 0 || stage.outputs[0].elements() == 0) return kernel;
  const int64_t points = int64_t{params.tile + 2} * (params.tile + 2), c = g.filter_size[3];
  const int64_t tiles = int64_t{g.rows[0]} * groups_for(g.rows[2], params.tile) * groups_for(g.rows[3], params.tile);
  if (points * tiles * std::max<int64_t>(c, g.n) > std::numeric_limits<int32_t>::max())
    return Error{Reason::layout_not_served, "The tiles' points span more than 2^31 elements; split the batch."};

  // The product of each point: tiles x channels by channels x filters.
  Product product;
  product.tile = *tile;
  product.tile.variant = "implicit";
  GemmRecord& m = product.record;
  for (int i = 0; i < 4; ++i) m.rows[i] = m.x_size[i] = m.instances[i] = m.filter_size[i] = m.stride[i] = m.dilation[i] = 1;
  m.m = m.rows[3] = m.x_size[3] = static_cast<int32_t>(tiles);
  m.n = g.n;
  m.k = m.filter_size[3] = static_cast<int32_t>(c);
  m.x_strides[3] = m.k, m.y_strides[3] = m.n;
  m.channel[0] = m.channel[1] = 1;
  m.instances[3] = static_cast<int32_t>(points);
  m.x_instance[3] = static_cast<int32_t>(tiles * c);
  m.y_instance[3] = static_cast<int32_t>(tiles * g.n);
  m.w_instance[3] = 1;  // each point has weights of its own
  m.alpha = 1;
  SPARKLE_TRY(packed, packed_product(m, *tile));
  m = packed.record;
  product.packed = true;
  product.vectors = c % 4 == 0;
  product.stores = g.n % 4 == 0;

  const Epilogue& e = params.epilogue;
  const int scale = 2, bias = scale + e.scale, first = bias + e.bias, residuals = e.residuals_before + e.residuals_after;
  const int y = static_cast<int>(stage.inputs.size());
  const Address inputs{kWorkspace, 0}, products{kWorkspace, points * tiles * c * 4};
  const bool constant = constants >> 1 & 1;
  const Address weights = constant ? Address{1} : Address{kWorkspace, products.offset + points * tiles * g.n * 4};
  kernel->workspace = products.offset + points * tiles * g.n * 4 + (constant ? 0 : packed.elements() * 4);

  GemmRecord whole = g;
  whole.n_padded = m.n_padded;
  SPARKLE_TRY(post_op, post_op_of(stage, *shop.context));
  SPARKLE_TRY(record, upload_with(shop, &whole, sizeof whole, post_op));
  kernel->records.push_back(record);
  const auto pipeline = [&](std::string_view name, const Epilogue& with) {
    const std::string shader = shader_for(name, fp16);
    PipelineRequest request;
    if (with.has_post_op()) request.post_op = &post_op.text;
    request.shader = shader;
    request.constants = {kThreads, 1, 1};
    set(request, with);
    set(request, {{GemmConstant::kTile, params.tile}});
    return shop.pipelines->get(request);
  };
  SPARKLE_TRY(to_points, pipeline("winograd_input", {}));
  SPARKLE_TRY(to_outputs, pipeline("winograd_output", e));
  const Address x{0};
  kernel->dispatches.push_back(over(to_points, tiles * c, {x, x, inputs, x, x, x, x}, record->address(), 0));
  if (constant) {
    std::string key = "vulkan.winograd" + std::to_string(params.tile) + std::string(name_of(stage.inputs[1].dtype)) + ":" +
                      std::to_string(m.n_padded) + "," + std::to_string(packed.k_padded) + ":" +
                      stage.inputs[1].shape.to_string() + "@" + stage.inputs[1].layout.strides.to_string() + "+" +
                      std::to_string(stage.inputs[1].layout.offset);
    kernel->packings.push_back({1, packed.elements() * 4, key,
                                PackedPoints{packed, g, stage.inputs[1].layout.offset, stage.inputs[1].dtype, params.tile}});
  } else {
    SPARKLE_TRY(of_filters, pipeline("winograd_filter", {}));
    kernel->dispatches.push_back(over(of_filters, packed.k_padded * m.n_padded, {x, {1}, weights, x, x, x, x},
                                      record->address(), static_cast<int32_t>(packed.k_padded)));
    kernel->dispatches.back().after_previous = false;
  }
  product.operands = {inputs, weights, products, inputs, inputs, inputs, inputs};
  SPARKLE_CHECK(add_product(*kernel, shop, product));
  kernel->dispatches.push_back(over(to_outputs, tiles * g.n,
                                    {products,
                                     x,
                                     {y},
                                     {e.scale ? scale : 0},
                                     {e.bias ? bias : 0},
                                     {residuals > 0 ? first : 0},
                                     {residuals > 1 ? first + 1 : 0}},
                                    record->address(), 0));
  auto& last = kernel->dispatches.back().addresses;
  last.insert(last.end(), post_op.operands.begin(), post_op.operands.end());
  return kernel;
}

}  // namespace sparkle::vulkan
