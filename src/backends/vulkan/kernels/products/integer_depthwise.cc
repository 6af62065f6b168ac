// Integer stages of the depthwise family on Vulkan: rows of words where channels lie in vec4s, else one output a thread.
#include "backends/vulkan/shaders/gemm_constants.h"
#include "backends/vulkan/kernels/products/integer_sums.h"
#include "families/depthwise/depthwise.h"
#include "families/values/element.h"
#include "families/gemm/gemm.h"
#include "families/loops/chunk_move.h"

namespace sparkle::vulkan {
namespace {

constexpr int64_t kThreads = 64;

// Weights as [tap][channel] of 16 bits: constant filters less their zero point take nine.
struct PackedFilters {
  GemmRecord g;
  TensorDesc w;

  void operator()(const std::byte* from, std::byte* to, Executor&) const {
    auto* out = reinterpret_cast<int16_t*>(to);
    const int64_t size = size_of(w.dtype);
    for (int t = 0; t < g.filter_size[0]; ++t)
      for (int r = 0; r < g.filter_size[1]; ++r)
        for (int s = 0; s < g.filter_size[2]; ++s)
          for (int n = 0; n < g.n; ++n) {
            const int64_t at = w.layout.offset + n * int64_t{g.w_filter_stride} + t * int64_t{g.w_strides[0]} +
                               r * int64_t{g.w_strides[1]} + s * int64_t{g.w_strides[2]};
            *out++ = static_cast<int16_t>(load_element(w.dtype, from + at * size));
          }
  }
};

}  // namespace

Result<VulkanKernelPtr> make_integer_depthwise(const Stage& stage, const DepthwiseSchedule& schedule, const Workshop& shop,
                                               uint32_t constants) {
  const auto& p = get<DepthwiseParams>(stage.params);
  SPARKLE_CHECK(check_integer_operands(stage, p.epilogue, shop));
  auto kernel = std::make_unique<VulkanKernel>(stage);
  if (stage.outputs[0].elements() == 0) return kernel;
  SPARKLE_TRY(g, gemm_record(as_groups(stage)));
  if (schedule.variant == "bytes_naive") {
    SPARKLE_CHECK(add_naive(*kernel, g, p.epilogue, shop));
    return kernel;
  }
  g.n = static_cast<int32_t>(feature_map(stage.outputs[0]).c);
  const TensorDesc& w = stage.inputs[1];
  if (!channels_in_vec4(stage.inputs[0]) || !channels_in_vec4(stage.outputs[0]))
    return Error{Reason::layout_not_served, "rows of words need channels side by side in multiples of four"};
  const bool packed = constants >> 1 & 1;
  PipelineRequest request;
  request.shader = "integer_depthwise";
  request.constants = {kThreads, 1, 1};
  set_integers(request, stage, p.epilogue);
  using enum GemmConstant;
  set(request, {{kColumns, schedule.columns}, {kFilterS, g.filter_size[2]}, {kStrideS, g.stride[2]}, {kPacked, packed}});
  SPARKLE_TRY(pipeline, shop.pipelines->get(request));
  SPARKLE_TRY(record, shop.upload(&g, sizeof g));
  Dispatch d = integer_dispatch(stage, p.epilogue, pipeline, *record, 0);
  const int64_t rows = int64_t{1} * g.rows[0] * g.rows[1] * g.rows[2],
                blocks = (g.rows[3] + schedule.columns - 1) / schedule.columns;
  d.groups = groups_of_threads(rows * blocks * (g.n / 4), kThreads);
  if (packed)
    kernel->packings.push_back({1, g.n * p.window.taps() * 2,
                                "vulkan.depthwise16:" + std::string(name_of(w.dtype)) + w.shape.to_string() + "@" +
                                    w.layout.strides.to_string() + "+" + std::to_string(w.layout.offset),
                                PackedFilters{g, w}});
  kernel->dispatches.push_back(std::move(d));
  kernel->records.push_back(std::move(record));
  return kernel;
}

}  // namespace sparkle::vulkan
