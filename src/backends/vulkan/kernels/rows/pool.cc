// The pool family on Vulkan: one output a thread, or four channels of one where channels lie side by side, or a workgroup for a
// few outputs with long windows.
#include "backends/vulkan/kernels/byte_types.h"
#include "backends/vulkan/kernels/divisor.h"
#include "backends/vulkan/kernels/real_types.h"
#include "backends/vulkan/kernels/moves/chunks.h"
#include "backends/vulkan/kernels/vulkan_kernel.h"
#include "families/pool/pool.h"
#include "families/pool/pool_groups.h"

namespace sparkle::vulkan {
namespace {

constexpr int64_t kThreads = 64;
constexpr uint32_t kPositions = 4;  // the third operand: positions of the maxima

// As in glsl/pool.comp.
struct PoolRecord {
  uint32_t count;
  Divisor n, channels, d, h, w;
  int32_t x_size[4], x_strides[4], y_strides[4], i_strides[4], channel[4];
  int32_t filter[4], stride[4], dilation[4], pad[4], pad_end[4];
  int32_t power;
};

void fill(int32_t (&to)[4], std::initializer_list<int64_t> values) {
  int i = 0;
  for (const int64_t v : values) to[i++] = static_cast<int32_t>(v);
}
void fill(int32_t (&to)[4], const Triple& t) { fill(to, {t[0], t[1], t[2]}); }

// Strides count `width` elements.
void fill_strides(int32_t (&to)[4], const FeatureMap& m, int64_t width) {
  fill(to, {m.image_stride / width, m.plane_stride / width, m.row_stride / width, m.pixel_stride / width});
}

PoolRecord record_of(const Stage& stage, int64_t width) {
  const auto& p = get<PoolParams>(stage.params);
  const FeatureMap x = feature_map(stage.inputs[0]), y = feature_map(stage.outputs[0]);
  PoolRecord r{};
  r.count = static_cast<uint32_t>(stage.outputs[0].elements() / width);
  r.n = divisor(y.n), r.channels = divisor(y.c / width), r.d = divisor(y.d), r.h = divisor(y.h), r.w = divisor(y.w);
  fill(r.x_size, {x.n, x.d, x.h, x.w});
  fill_strides(r.x_strides, x, width);
  fill_strides(r.y_strides, y, width);
  fill(r.channel, {width > 1 ? 1 : x.channel_stride, width > 1 ? 1 : y.channel_stride, 0, 0});
  if (stage.outputs.size() > 1) {
    const FeatureMap i = feature_map(stage.outputs[1]);
    fill_strides(r.i_strides, i, 1);
    r.channel[2] = static_cast<int32_t>(i.channel_stride);
  }
  fill(r.filter, p.window.filter);
  fill(r.stride, p.window.stride);
  fill(r.dilation, p.window.dilation);
  fill(r.pad, p.window.pad_begin);
  fill(r.pad_end, p.window.pad_end);
  r.power = static_cast<int32_t>(p.p);
  return r;
}

}  // namespace

Result<VulkanKernelPtr> make_pool(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t) {
  const std::string& variant = variant_of(schedule);
  const bool group = variant == "group", wide = variant == "vectors" || (group && pool_in_vec4(stage));
  if (!wide && !group && variant != "naive")
    return Error{Reason::backend_lacks_variant, "the Vulkan backend has no pool variant '" + variant + "'"};
  const auto& p = get<PoolParams>(stage.params);
  const DType type = stage.inputs[0].dtype;
  const bool bytes = is_byte(type) && type == stage.outputs[0].dtype && variant == "naive" && p.kind == PoolKind::max;
  if (bytes) SPARKLE_CHECK(check_bytes(shop));
  const bool doubles = type == DType::f64 && stage.outputs[0].dtype == type && variant == "naive" &&
                       shop.context->features().f64 && (p.kind != PoolKind::lp || p.p <= 2);
  SPARKLE_TRY(fp16, bytes || doubles ? Result<bool>(false) : in_fp16(stage, shop, kPositions));
  if (group && stage.outputs.size() > 1)
    return Error{Reason::operator_not_served, "the pool variant 'group' gives no positions of maxima; use the variant naive"};
  if (wide && (stage.outputs.size() > 1 || !channels_in_vec4(stage.inputs[0]) || !channels_in_vec4(stage.outputs[0])))
    return Error{Reason::layout_not_served,
                 "the pool variant 'vectors' needs channels in multiples of four side by side, and no positions"};
  auto kernel = std::make_unique<VulkanKernel>(stage);
  if (stage.outputs[0].elements() == 0) return kernel;
  for (const auto* list : {&stage.inputs, &stage.outputs})
    for (const TensorDesc& d : *list)
      if (extent(d.shape, d.layout) > INT32_MAX) return too_far("pool");
  const PoolRecord r = record_of(stage, wide ? 4 : 1);
  const bool positions = stage.outputs.size() > 1, planes = !wide && feature_map(stage.inputs[0]).channel_stride != 1;
  const std::string shader = bytes     ? "pool_1_byte"
                             : doubles ? "pool_1_double"
                                       : shader_for(group  ? (wide ? "pool_group_4" : "pool_group_1")
                                                    : wide ? "pool_4"
                                                           : "pool_1",
                                                    fp16);
  PipelineRequest request;
  request.shader = shader;
  request.constants = {kThreads,  1,     1, static_cast<uint32_t>(p.kind), p.kind == PoolKind::average && p.count_pad,
                       positions, planes};
  if (bytes) request.constants.push_back(type == DType::i8);
  const int64_t lanes = pool_lanes(stage);
  if (group) {
    request.constants[0] = kPoolGroupThreads;
    request.constants.push_back(static_cast<uint32_t>(lanes));
  }
  SPARKLE_TRY(pipeline, shop.pipelines->get(request));
  SPARKLE_TRY(record, shop.upload(&r, sizeof r));
  Dispatch d;
  d.pipeline = pipeline;
  d.groups = flat_groups(groups_for(r.count, group ? lanes : kThreads));
  d.addresses = {{0}, {1}, {positions ? 2 : 1}};
  d.push(record->address());
  kernel->dispatches.push_back(std::move(d));
  kernel->records.push_back(std::move(record));
  return kernel;
}

}  // namespace sparkle::vulkan
