// The depthwise family on Vulkan: one output a thread, or four channels of one, or tiles of outputs of four channels.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "backends/vulkan/kernels/divisor.h"
#include "backends/vulkan/kernels/products/integer_sums.h"
#include "backends/vulkan/kernels/real_types.h"
#include "backends/vulkan/kernels/elements/post_op.h"
#include "backends/vulkan/kernels/moves/chunks.h"
#include "backends/vulkan/kernels/vulkan_kernel.h"
#include "families/depthwise/depthwise.h"
#include "families/integers/integers.h"

namespace sparkle::vulkan {
namespace {

constexpr int64_t kThreads = 64;

struct DepthwiseRecord {
#include "backends/vulkan/glsl/record_fields.inc"
#include "backends/vulkan/glsl/depthwise_record.inc"
};

consteval bool record_has_no_gaps() {
  size_t end = 0;
  bool none = true;
#define FIELD(name, bytes) none &= offsetof(DepthwiseRecord, name) == end, end += (bytes);
#include "backends/vulkan/glsl/record_places.inc"
#include "backends/vulkan/glsl/depthwise_record.inc"
#undef FIELD
  return none && end == sizeof(DepthwiseRecord);
}
static_assert(record_has_no_gaps());

void fill(int32_t (&to)[4], std::initializer_list<int64_t> values) {
  int i = 0;
  for (const int64_t v : values) to[i++] = static_cast<int32_t>(v);
}
void fill(int32_t (&to)[4], const Triple& t) { fill(to, {t[0], t[1], t[2]}); }
void fill_strides(int32_t (&to)[4], const FeatureMap& m) {
  fill(to, {m.image_stride, m.plane_stride, m.row_stride, m.pixel_stride});
}

DepthwiseRecord record_of(const Stage& stage) {
  const auto& p = get<DepthwiseParams>(stage.params);
  const Epilogue& e = p.epilogue;
  const FeatureMap x = feature_map(stage.inputs[0]), w = feature_map(stage.inputs[1]), y = feature_map(stage.outputs[0]);
  DepthwiseRecord r{};
  r.n = divisor(y.n), r.channels = divisor(y.c), r.d = divisor(y.d), r.h = divisor(y.h), r.w = divisor(y.w);
  r.multiplier = divisor(x.c > 0 ? y.c / x.c : 1);
  fill(r.y_size, {y.n, y.d, y.h, y.w});
  fill(r.x_size, {x.n, x.d, x.h, x.w});
  fill_strides(r.x_strides, x);
  fill_strides(r.y_strides, y);
  fill(r.channel, {x.channel_stride, y.channel_stride, 0, 0});
  size_t next = 2;
  const auto stride_of = [](const TensorDesc& d) {
    return d.layout.strides.empty() ? 0 : static_cast<int32_t>(d.layout.strides.back());
  };
  if (e.scale) r.vector_strides[0] = stride_of(stage.inputs[next++]);
  if (e.bias) r.vector_strides[1] = stride_of(stage.inputs[next++]);
  for (int i = 0; i < e.residuals(); ++i) {
    const FeatureMap m = feature_map(stage.inputs[next++]);
    fill_strides(r.r_strides[i], m);
    r.channel[2 + i] = static_cast<int32_t>(m.channel_stride);
  }
  fill(r.filter_size, p.window.filter);
  fill(r.stride, p.window.stride);
  fill(r.dilation, p.window.dilation);
  fill(r.pad, p.window.pad_begin);
  fill(r.w_strides, {w.image_stride, w.plane_stride, w.row_stride, w.pixel_stride});
  r.filters = static_cast<int32_t>(y.c);
  r.alpha = static_cast<float>(e.alpha), r.a = static_cast<float>(e.a), r.b = static_cast<float>(e.b);
  return r;
}

// Filters as [tap][filter].
template <class Element>
void pack(const TensorDesc& desc, const std::byte* from, std::byte* to) {
  const FeatureMap w = feature_map(desc);
  const auto* source = reinterpret_cast<const Element*>(from) + desc.layout.offset;
  auto* target = reinterpret_cast<Element*>(to);
  for (int64_t t = 0; t < w.d; ++t)
    for (int64_t r = 0; r < w.h; ++r)
      for (int64_t s = 0; s < w.w; ++s)
        for (int64_t k = 0; k < w.n; ++k)
          *target++ = source[k * w.image_stride + t * w.plane_stride + r * w.row_stride + s * w.pixel_stride];
}

bool has_vec4(const Stage& stage) {
  return feature_map(stage.inputs[0]).c == feature_map(stage.outputs[0]).c && channels_in_vec4(stage.inputs[0]) &&
         channels_in_vec4(stage.outputs[0]);
}

VulkanKernel::Packing packing_of(const TensorDesc& w) {
  return {1, w.bytes(),
          "vulkan.depthwise:" + std::string(name_of(w.dtype)) + w.shape.to_string() + "@" + w.layout.strides.to_string() + "+" +
              std::to_string(w.layout.offset),
          [w](const std::byte* from, std::byte* to, Executor&) {
            return w.dtype == DType::f16 ? pack<uint16_t>(w, from, to) : pack<float>(w, from, to);
          }};
}

// x, w, y, scale, bias, residuals: those that are not there stand for x.
std::vector<Address> addresses_of(const Stage& stage, const Epilogue& e) {
  const int scale = 2, bias = scale + e.scale, first = bias + e.bias, residuals = e.residuals_before + e.residuals_after;
  const int y = static_cast<int>(stage.inputs.size());
  return {
      {0}, {1}, {y}, {e.scale ? scale : 0}, {e.bias ? bias : 0}, {residuals > 0 ? first : 0}, {residuals > 1 ? first + 1 : 0}};
}

void append(std::vector<uint32_t>& to, std::initializer_list<int64_t> values) {
  for (const int64_t v : values) to.push_back(static_cast<uint32_t>(v));
}

}  // namespace

Result<VulkanKernelPtr> make_depthwise(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t constants) {
  const auto* s = get_if<DepthwiseSchedule>(&schedule);
  if (s && is_integer(stage.inputs)) return make_integer_depthwise(stage, *s, shop, constants);
  const bool tiles = s && s->variant == "vectors" && s->rows > 0 && s->columns > 0, quads = s && s->variant == "quads";
  if (!s || (!tiles && !quads && s->variant != "naive"))
    return Error{Reason::backend_lacks_variant, "the Vulkan backend has no depthwise variant '" + variant_of(schedule) + "'"};
  SPARKLE_TRY(fp16, in_fp16(stage, shop));
  for (const auto* list : {&stage.inputs, &stage.outputs})
    for (const TensorDesc& d : *list)
      if (extent(d.shape, d.layout) > INT32_MAX) return too_far("depthwise");
  const auto& p = get<DepthwiseParams>(stage.params);
  const Window& f = p.window;
  const Epilogue& e = p.epilogue;
  if ((tiles || quads) && !has_vec4(stage))
    return Error{Reason::layout_not_served, "the depthwise variant '" + s->variant +
                                                "' needs channels in multiples of four side by side, and one filter each"};
  if (tiles && f.filter[0] != 1)
    return Error{Reason::filter_not_served, "the depthwise variant 'vectors' has filters of two dimensions"};
  auto kernel = std::make_unique<VulkanKernel>(stage);
  if (stage.outputs[0].elements() == 0) return kernel;

  const FeatureMap y = feature_map(stage.outputs[0]);
  const bool packed = (tiles || quads) && (constants >> 1 & 1);
  DepthwiseRecord r = record_of(stage);
  int64_t threads = stage.outputs[0].elements();
  const std::string shader = shader_for(tiles   ? "depthwise_vectors"
                                        : quads ? "depthwise_window_4"
                                                : "depthwise_window_1",
                                        fp16);
  SPARKLE_TRY(post_op, post_op_of(stage, *shop.context));
  PipelineRequest request;
  request.shader = shader;
  if (post_op.there()) request.post_op = &post_op.text;
  append(request.constants,
         {kThreads, 1, 1, static_cast<int64_t>(e.activation), e.scale, e.bias, e.residuals_before, e.residuals_after});
  if (tiles) {
    const int64_t rows = (y.h + s->rows - 1) / s->rows, columns = (y.w + s->columns - 1) / s->columns;
    r.channels = divisor(y.c / 4), r.h = divisor(rows), r.w = divisor(columns);
    threads = y.n * y.d * rows * columns * (y.c / 4);
    append(request.constants,
           {s->rows, s->columns, packed, f.filter[1], f.filter[2], f.stride[1], f.stride[2], f.dilation[1], f.dilation[2]});
  } else if (quads) {
    r.channels = divisor(y.c / 4);
    threads /= 4;
    append(request.constants, {false, packed});
  } else {
    append(request.constants, {feature_map(stage.inputs[0]).channel_stride != 1, false});
  }
  if (packed) kernel->packings.push_back(packing_of(stage.inputs[1]));
  r.count = static_cast<uint32_t>(threads);
  SPARKLE_TRY(pipeline, shop.pipelines->get(request));
  SPARKLE_TRY(record, upload_with(shop, &r, sizeof r, post_op));
  Dispatch d;
  d.pipeline = pipeline;
  d.groups = groups_of_threads(threads, kThreads);
  d.addresses = addresses_of(stage, e);
  d.addresses.insert(d.addresses.end(), post_op.operands.begin(), post_op.operands.end());
  d.push(record->address());
  kernel->dispatches.push_back(std::move(d));
  kernel->records.push_back(std::move(record));
  return kernel;
}

}  // namespace sparkle::vulkan
