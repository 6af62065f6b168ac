// The depthwise family on CUDA: one output a thread, or four channels of one.
#include "families/depthwise/depthwise.h"

#include <cstring>

#include "backends/cuda/stages/products/integers.h"
#include "backends/cuda/stages/windows.h"
#include "families/integers/integers.h"
#include "families/loops/chunk_move.h"

namespace sparkle::cuda {
namespace {

// Filters as [tap][filter].
void pack(const TensorDesc& desc, const std::byte* from, std::byte* to) {
  const FeatureMap w = feature_map(desc);
  const int64_t size = size_of(desc.dtype);
  for (int64_t t = 0; t < w.d; ++t)
    for (int64_t r = 0; r < w.h; ++r)
      for (int64_t s = 0; s < w.w; ++s)
        for (int64_t k = 0; k < w.n; ++k, to += size) {
          const int64_t at =
              desc.layout.offset + k * w.image_stride + t * w.plane_stride + r * w.row_stride + s * w.pixel_stride;
          std::memcpy(to, from + at * size, static_cast<size_t>(size));
        }
}

int32_t stride_of(const TensorDesc& d) { return d.layout.strides.empty() ? 0 : static_cast<int32_t>(d.layout.strides.back()); }

}  // namespace

Result<CudaKernelPtr> make_depthwise(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t constants) {
  const auto* s = get_if<DepthwiseSchedule>(&schedule);
  if (s && is_integer(stage.inputs)) return make_integer_depthwise(stage, *s, shop, constants);
  const bool wide = s && s->variant == "quads";
  if (!s || (!wide && s->variant != "naive"))
    return Error{Reason::backend_lacks_variant, "the CUDA backend has no depthwise variant '" + variant_of(schedule) + "'"};
  const DType type = stage.outputs[0].dtype;
  for (const TensorDesc& d : stage.inputs)
    if (d.dtype != type || (type != DType::f32 && type != DType::f16 && type != DType::bf16))
      return Error{Reason::type_not_served, "the CUDA depthwise kernels compute on f32, f16 and bf16"};
  const FeatureMap x = feature_map(stage.inputs[0]), w = feature_map(stage.inputs[1]), y = feature_map(stage.outputs[0]);
  if (wide && (x.c != y.c || !channels_in_vec4(stage.inputs[0]) || !channels_in_vec4(stage.outputs[0])))
    return Error{Reason::layout_not_served,
                 "the depthwise variant 'quads' needs channels in multiples of four side by side, and one filter each"};
  const auto& p = get<DepthwiseParams>(stage.params);
  const Epilogue& e = p.epilogue;
  if (e.has_post_op())
    return Error{Reason::tail_not_served, "the CUDA depthwise kernels have no place for a program behind their sums"};
  auto kernel = std::make_unique<CudaKernel>(stage);
  if (stage.outputs[0].elements() == 0) return kernel;
  // Filters that are computed at run time lie as they come: one output a thread reads them.
  const bool packed = wide && (constants >> 1 & 1);
  const int width = packed ? 4 : 1;
  SPARKLE_TRY(r, window_record(stage, p.window, width));
  r.multiplier = divisor_of(x.c > 0 ? y.c / x.c : 1);
  const int64_t strides[4] = {w.image_stride, w.plane_stride, w.row_stride, w.pixel_stride};
  const int64_t taps[4] = {1, w.h * w.w * w.n, w.w * w.n, w.n};
  for (size_t i = 0; i < 4; ++i) r.w_strides[i] = static_cast<int32_t>(packed ? taps[i] : strides[i]);
  r.alpha = static_cast<float>(e.alpha), r.a = static_cast<float>(e.a), r.b = static_cast<float>(e.b);
  r.activation = static_cast<int32_t>(e.activation), r.before = e.residuals_before, r.after = e.residuals_after;

  std::vector<KernelLaunch::Address> addresses{{offsetof(WindowRecord, x), 0, 0},
                                               {offsetof(WindowRecord, w), 1, 0},
                                               {offsetof(WindowRecord, y), static_cast<int>(stage.inputs.size()), 0}};
  int next = 2;
  if (e.scale) {
    r.scale_stride = stride_of(stage.inputs[static_cast<size_t>(next)]);
    addresses.push_back({offsetof(WindowRecord, scale), next++, 0});
  }
  if (e.bias) {
    r.bias_stride = stride_of(stage.inputs[static_cast<size_t>(next)]);
    addresses.push_back({offsetof(WindowRecord, bias), next++, 0});
  }
  for (size_t i = 0; i < static_cast<size_t>(e.residuals()); ++i) {
    const FeatureMap m = feature_map(stage.inputs[static_cast<size_t>(next)]);
    set_strides(r.residual_strides[i], m);
    r.residual_channel[i] = static_cast<int32_t>(m.channel_stride);
    addresses.push_back({offsetof(WindowRecord, residual) + i * sizeof(void*), next++, 0});
  }
  if (packed) {
    const TensorDesc filters = stage.inputs[1];
    kernel->packings.push_back({1, filters.bytes(),
                                "cuda.depthwise:" + std::string(name_of(type)) + filters.shape.to_string() + "@" +
                                    filters.layout.strides.to_string() + "+" + std::to_string(filters.layout.offset),
                                [filters](const std::byte* from, std::byte* to, Executor&) { pack(filters, from, to); }});
  }
  SPARKLE_TRY(launch, launch_of(shop, packed ? "sparkle_depthwise_4" : "sparkle_depthwise_1", r,
                                blocks_for(r.count, kWindowThreads), kWindowThreads));
  launch.addresses = std::move(addresses);
  kernel->launches.push_back(std::move(launch));
  return kernel;
}

}  // namespace sparkle::cuda
