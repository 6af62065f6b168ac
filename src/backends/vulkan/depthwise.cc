// The depthwise family on Vulkan: one output a thread, or tiles of outputs of four channels.
#include <algorithm>
#include <cstring>

#include "backends/vulkan/divisor.h"
#include "backends/vulkan/integer_sums.h"
#include "backends/vulkan/units.h"

namespace sparkle::vulkan {
namespace {

constexpr int64_t kThreads = 64;

// As in glsl/depthwise.glsl.
struct DepthwiseRecord {
  uint32_t count;
  Divisor n, channels, d, h, w, multiplier;
  int32_t y_size[4], x_size[4], x_pitch[4], y_pitch[4], r_pitch[2][4], channel[4];
  int32_t filter[4], stride[4], dilation[4], pad[4], w_pitch[4], vector_pitch[2];
  int32_t filters;
  float alpha, a, b;
};

void fill(int32_t (&to)[4], std::initializer_list<int64_t> values) {
  int i = 0;
  for (const int64_t v : values) to[i++] = static_cast<int32_t>(v);
}
void fill(int32_t (&to)[4], const Triple& t) { fill(to, {t[0], t[1], t[2]}); }
void fill_pitches(int32_t (&to)[4], const FeatureMap& m) { fill(to, {m.pitch_n, m.pitch_d, m.pitch_h, m.pitch_w}); }

DepthwiseRecord record_of(const Stage& stage) {
  const auto& p = std::get<DepthwiseParams>(stage.params);
  const Epilogue& e = p.epilogue;
  const FeatureMap x = feature_map(stage.inputs[0]), w = feature_map(stage.inputs[1]), y = feature_map(stage.outputs[0]);
  DepthwiseRecord r{};
  r.n = divisor(y.n), r.channels = divisor(y.c), r.d = divisor(y.d), r.h = divisor(y.h), r.w = divisor(y.w);
  r.multiplier = divisor(x.c > 0 ? y.c / x.c : 1);
  fill(r.y_size, {y.n, y.d, y.h, y.w});
  fill(r.x_size, {x.n, x.d, x.h, x.w});
  fill_pitches(r.x_pitch, x);
  fill_pitches(r.y_pitch, y);
  fill(r.channel, {x.pitch_c, y.pitch_c, 0, 0});
  size_t next = 2;
  const auto pitch_of = [](const TensorDesc& d) {
    return d.layout.pitch.empty() ? 0 : static_cast<int32_t>(d.layout.pitch.back());
  };
  if (e.scale) r.vector_pitch[0] = pitch_of(stage.inputs[next++]);
  if (e.bias) r.vector_pitch[1] = pitch_of(stage.inputs[next++]);
  for (int i = 0; i < e.residuals_before + e.residuals_after; ++i) {
    const FeatureMap m = feature_map(stage.inputs[next++]);
    fill_pitches(r.r_pitch[i], m);
    r.channel[2 + i] = static_cast<int32_t>(m.pitch_c);
  }
  fill(r.filter, p.window.filter);
  fill(r.stride, p.window.stride);
  fill(r.dilation, p.window.dilation);
  fill(r.pad, p.window.pad_begin);
  fill(r.w_pitch, {w.pitch_n, w.pitch_d, w.pitch_h, w.pitch_w});
  r.filters = static_cast<int32_t>(y.c);
  r.alpha = static_cast<float>(e.alpha), r.a = static_cast<float>(e.a), r.b = static_cast<float>(e.b);
  return r;
}

// Filters as [tap][filter].
void pack(const TensorDesc& desc, const std::byte* from, std::byte* to) {
  const FeatureMap w = feature_map(desc);
  const auto* source = reinterpret_cast<const float*>(from) + desc.layout.offset;
  auto* target = reinterpret_cast<float*>(to);
  for (int64_t h = 0; h < w.h; ++h)
    for (int64_t s = 0; s < w.w; ++s)
      for (int64_t k = 0; k < w.n; ++k) *target++ = source[k * w.pitch_n + h * w.pitch_h + s * w.pitch_w];
}

bool is_wide(const Stage& stage, const DepthwiseSchedule& s) {
  const Window& f = std::get<DepthwiseParams>(stage.params).window;
  return feature_map(stage.inputs[0]).c == feature_map(stage.outputs[0]).c && f.filter[0] == 1 && s.rows > 0 && s.columns > 0 &&
         channels_in_fours(stage.inputs[0]) && channels_in_fours(stage.outputs[0]);
}

}  // namespace

Result<VulkanKernelPtr> make_depthwise(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t constants) {
  const auto* tile = std::get_if<DepthwiseSchedule>(&schedule);
  if (tile && is_integer(stage.inputs)) return make_integer_depthwise(stage, *tile, shop, constants);
  const bool wide = tile && tile->variant == "vectors";
  if (!tile || (!wide && tile->variant != "naive"))
    return Error{Reason::backend_lacks_variant, "the Vulkan backend has no depthwise variant '" + variant_of(schedule) + "'"};
  for (const auto* list : {&stage.inputs, &stage.outputs})
    for (const TensorDesc& d : *list) {
      if (d.dtype != DType::f32) return Error{Reason::type_not_served, "the depthwise kernels for Vulkan serve f32"};
      if (extent(d.shape, d.layout) > INT32_MAX) return too_far("depthwise");
    }
  if (wide && !is_wide(stage, *tile))
    return Error{Reason::layout_not_served,
                 "the depthwise variant 'vectors' needs channels in fours side by side, and one filter each"};
  auto kernel = std::make_unique<VulkanKernel>(stage);
  if (stage.outputs[0].elements() == 0) return kernel;
  const auto& p = std::get<DepthwiseParams>(stage.params);
  const Epilogue& e = p.epilogue;
  const FeatureMap y = feature_map(stage.outputs[0]);
  DepthwiseRecord r = record_of(stage);
  PipelineRequest request;
  request.shader = wide ? "depthwise_vectors" : "depthwise_naive";
  request.constants = {kThreads,
                       1,
                       1,
                       static_cast<uint32_t>(e.activation),
                       e.scale,
                       e.bias,
                       static_cast<uint32_t>(e.residuals_before),
                       static_cast<uint32_t>(e.residuals_after)};
  int64_t threads = stage.outputs[0].elements();
  if (wide) {
    const bool packed = constants >> 1 & 1;
    const int64_t rows = (y.h + tile->rows - 1) / tile->rows, columns = (y.w + tile->columns - 1) / tile->columns;
    r.channels = divisor(y.c / 4), r.h = divisor(rows), r.w = divisor(columns);
    threads = y.n * y.d * rows * columns * (y.c / 4);
    const Window& f = p.window;
    for (const int64_t c : {int64_t{tile->rows}, int64_t{tile->columns}, int64_t{packed}, f.filter[1], f.filter[2], f.stride[1],
                            f.stride[2], f.dilation[1], f.dilation[2]})
      request.constants.push_back(static_cast<uint32_t>(c));
    if (packed) {
      const TensorDesc& w = stage.inputs[1];
      kernel->packings.push_back(
          {1, w.bytes(),
           "vulkan.depthwise:" + w.shape.to_string() + "@" + w.layout.pitch.to_string() + "+" + std::to_string(w.layout.offset),
           [w](const std::byte* from, std::byte* to, Executor&) { pack(w, from, to); }});
    }
  } else {
    request.constants.push_back(feature_map(stage.inputs[0]).pitch_c != 1);
  }
  r.count = static_cast<uint32_t>(threads);
  SPARKLE_TRY(pipeline, shop.pipelines->get(request));
  SPARKLE_TRY(record, shop.upload(&r, sizeof r));
  const int first = 2 + e.scale + e.bias, residuals = e.residuals_before + e.residuals_after;
  Dispatch d;
  d.pipeline = pipeline;
  d.groups = flat_groups(groups_for(threads, kThreads));
  d.addresses = {{0},
                 {1},
                 {static_cast<int>(stage.inputs.size())},
                 {e.scale ? 2 : 0},
                 {e.bias ? 2 + e.scale : 0},
                 {residuals > 0 ? first : 0},
                 {residuals > 1 ? first + 1 : 0}};
  d.push(record->address());
  kernel->dispatches.push_back(std::move(d));
  kernel->records.push_back(std::move(record));
  return kernel;
}

}  // namespace sparkle::vulkan
