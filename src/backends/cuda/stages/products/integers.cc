// An output, or four channels of one, a thread: sums of 8-bit integers by 32-bit arithmetic.
#include "backends/cuda/stages/products/integers.h"

#include "backends/cuda/stages/moves/moves.h"
#include "backends/cuda/stages/windows.h"
#include "families/gemm/gemm.h"
#include "families/loops/chunk_move.h"
#include "families/values/element.h"

namespace sparkle::cuda {
namespace {

// Zero points and what ends a sum, `at` the place of `end` in the record.
void set_end(SumsEnd& end, size_t at, const Stage& stage, const Epilogue& e, std::vector<KernelLaunch::Address>& addresses) {
  const IntegerOperands io = integer_operands(e);
  const auto operand = [&](int i) -> const TensorDesc& { return stage.inputs[static_cast<size_t>(i)]; };
  const auto bind = [&](size_t place, int i) {
    if (i >= 0) addresses.push_back({at + place, i, 0});
  };
  bind(offsetof(SumsEnd, x_zero), io.a_zero), bind(offsetof(SumsEnd, w_zero), io.b_zero);
  bind(offsetof(SumsEnd, y_zero), io.y_zero), bind(offsetof(SumsEnd, scale), io.scale), bind(offsetof(SumsEnd, bias), io.bias);
  end.w_zero_stride = filter_stride(operand(io.b_zero));
  if (io.scale >= 0) end.scale_stride = filter_stride(operand(io.scale));
  if (io.bias >= 0) end.bias_stride = filter_stride(operand(io.bias));
  const IntegerRange range = output_range(stage.outputs[0].dtype, e);
  end.low = static_cast<int32_t>(range.low), end.high = static_cast<int32_t>(range.high);
  end.x_type = static_cast<uint8_t>(operand(0).dtype), end.w_type = static_cast<uint8_t>(operand(1).dtype);
  end.y_type = static_cast<uint8_t>(stage.outputs[0].dtype);
}

// Filters as [tap][filter] of 16 bits: constant ones less their zero point take nine.
void pack_shorts(const TensorDesc& desc, const std::byte* from, std::byte* to) {
  const FeatureMap w = feature_map(desc);
  auto* out = reinterpret_cast<int16_t*>(to);
  for (int64_t t = 0; t < w.d; ++t)
    for (int64_t r = 0; r < w.h; ++r)
      for (int64_t s = 0; s < w.w; ++s)
        for (int64_t k = 0; k < w.n; ++k) {
          const int64_t at =
              desc.layout.offset + k * w.image_stride + t * w.plane_stride + r * w.row_stride + s * w.pixel_stride;
          *out++ = static_cast<int16_t>(load_element(desc.dtype, from + at * size_of(desc.dtype)));
        }
}

}  // namespace

int32_t filter_stride(const TensorDesc& d) {
  return d.shape.empty() || d.shape.back() == 1 ? 0 : static_cast<int32_t>(d.layout.strides.back());
}

Result<CudaKernelPtr> make_integer_sums(const Stage& stage, const Workshop& shop) {
  const Stage sums = stage.family() == Family::depthwise ? as_groups(stage) : stage;
  const Epilogue& e = get<GemmParams>(sums.params).epilogue;
  SPARKLE_CHECK(check_integer_stage(stage.inputs, stage.outputs[0], e));
  auto kernel = std::make_unique<CudaKernel>(stage);
  if (stage.outputs[0].elements() == 0) return kernel;
  SPARKLE_TRY(setup, gemm_setup(sums, 1, size_of(stage.inputs[1].dtype)));
  SumsRecord r;
  r.gemm = setup.record;
  for (size_t i = 0; i < 4; ++i) {
    r.gemm.w_instance[i] = static_cast<int32_t>(setup.filters.instance[i]);
    r.w_strides[i + 1] = static_cast<int32_t>(setup.filters.strides[i]);
  }
  r.w_strides[0] = static_cast<int32_t>(setup.filters.filter);
  r.gemm.channels_by = divisor_of(setup.filters.size[3]);
  r.count = static_cast<uint32_t>(stage.outputs[0].elements());
  r.n_by = divisor_of(setup.record.n), r.count_by = divisor_of(setup.instances);
  std::vector<KernelLaunch::Address> addresses{
      {offsetof(SumsRecord, gemm) + offsetof(GemmRecord, x), 0, 0},
      {offsetof(SumsRecord, gemm) + offsetof(GemmRecord, w), 1, 0},
      {offsetof(SumsRecord, gemm) + offsetof(GemmRecord, y), static_cast<int>(stage.inputs.size()), 0}};
  set_end(r.end, offsetof(SumsRecord, end), stage, e, addresses);
  SPARKLE_TRY(launch, launch_of(shop, "sparkle_integer_sums", r, blocks_for(r.count, kSumsThreads), kSumsThreads));
  launch.addresses = std::move(addresses);
  kernel->launches.push_back(std::move(launch));
  return kernel;
}

Result<CudaKernelPtr> make_integer_depthwise(const Stage& stage, const DepthwiseSchedule& schedule, const Workshop& shop,
                                             uint32_t constants) {
  if (schedule.variant == "bytes_naive") return make_integer_sums(stage, shop);
  if (schedule.variant != "bytes_quads")
    return Error{Reason::backend_lacks_variant,
                 "the CUDA backend has no depthwise variant '" + schedule.variant + "' on 8-bit integers"};
  const auto& p = get<DepthwiseParams>(stage.params);
  SPARKLE_CHECK(check_integer_stage(stage.inputs, stage.outputs[0], p.epilogue));
  const FeatureMap x = feature_map(stage.inputs[0]), y = feature_map(stage.outputs[0]), w = feature_map(stage.inputs[1]);
  if (x.c != y.c || !channels_in_vec4(stage.inputs[0]) || !channels_in_vec4(stage.outputs[0]))
    return Error{Reason::layout_not_served,
                 "the depthwise variant 'bytes_quads' needs channels in multiples of four side by side, and one filter each"};
  auto kernel = std::make_unique<CudaKernel>(stage);
  if (stage.outputs[0].elements() == 0) return kernel;
  DepthwiseSumsRecord r;
  SPARKLE_TRY(window, window_record(stage, p.window, 4));
  r.window = window;
  r.packed = constants >> 1 & 1;
  const int64_t strides[4] = {w.image_stride, w.plane_stride, w.row_stride, w.pixel_stride};
  const int64_t taps[4] = {1, w.h * w.w * w.n, w.w * w.n, w.n};
  for (size_t i = 0; i < 4; ++i) r.window.w_strides[i] = static_cast<int32_t>(r.packed ? taps[i] : strides[i]);
  const size_t at = offsetof(DepthwiseSumsRecord, window);
  std::vector<KernelLaunch::Address> addresses{{at + offsetof(WindowRecord, x), 0, 0},
                                               {at + offsetof(WindowRecord, w), 1, 0},
                                               {at + offsetof(WindowRecord, y), static_cast<int>(stage.inputs.size()), 0}};
  set_end(r.end, offsetof(DepthwiseSumsRecord, end), stage, p.epilogue, addresses);
  if (r.packed) {
    const TensorDesc filters = stage.inputs[1];
    kernel->packings.push_back(
        {1, filters.elements() * 2,
         "cuda.depthwise16:" + std::string(name_of(filters.dtype)) + filters.shape.to_string() + "@" +
             filters.layout.strides.to_string() + "+" + std::to_string(filters.layout.offset),
         [filters](const std::byte* from, std::byte* to, Executor&) { pack_shorts(filters, from, to); }});
  }
  SPARKLE_TRY(launch, launch_of(shop, "sparkle_integer_depthwise", r, blocks_for(r.window.count, kSumsThreads), kSumsThreads));
  launch.addresses = std::move(addresses);
  kernel->launches.push_back(std::move(launch));
  return kernel;
}

}  // namespace sparkle::cuda
