// The fft family on Vulkan: channels with a filter each in one dispatch, sums over channels as transforms, products of complex
// matrices by the gemm family's shader, and transforms back. Frequencies lie in the workspace:
// [frequency][group][tile][channel].
#include <cstring>
#include <limits>

#include "backends/vulkan/kernels/products/fft_tables.h"
#include "backends/vulkan/kernels/products/gemm_product.h"
#include "backends/vulkan/kernels/real_types.h"
#include "backends/vulkan/kernels/elements/post_op.h"
#include "backends/vulkan/kernels/moves/chunks.h"
#include "families/fft/fft.h"

namespace sparkle::vulkan {
namespace {

void append(std::vector<uint32_t>& to, std::initializer_list<int64_t> values) {
  for (const int64_t v : values) to.push_back(static_cast<uint32_t>(v));
}

// x, w, y, scale, bias, residuals: those that are not there stand for x.
std::vector<Address> addresses_of(const Stage& stage, const Epilogue& e) {
  const int scale = 2, bias = scale + e.scale, first = bias + e.bias, residuals = e.residuals_before + e.residuals_after;
  const int y = static_cast<int>(stage.inputs.size());
  return {
      {0}, {1}, {y}, {e.scale ? scale : 0}, {e.bias ? bias : 0}, {residuals > 0 ? first : 0}, {residuals > 1 ? first + 1 : 0}};
}

// What the dispatches of a kernel share.
struct Builder {
  const Stage& stage;
  const FftTileSchedule& schedule;
  const Workshop& shop;
  const FftCut cut;
  VulkanKernel& kernel;
  const bool fp16;
  const PostOp post_op;
  VkDeviceAddress roots = 0, offsets = 0;

  Status tables() {
    const std::vector<float> r = fft_roots(cut);
    const std::vector<int32_t> p = fft_offsets(cut);
    SPARKLE_TRY(of_roots, shop.upload(r.data(), static_cast<int64_t>(r.size()) * 4));
    SPARKLE_TRY(of_offsets, shop.upload(p.data(), static_cast<int64_t>(p.size()) * 4));
    roots = of_roots->address(), offsets = of_offsets->address();
    kernel.records.push_back(of_roots), kernel.records.push_back(of_offsets);
    return ok();
  }

  // A dispatch over pairs of planes and `outers`; `last`: the one that stores outputs, with the stage's post-op behind its
  // sums.
  Status add(std::string_view shader, const Epilogue& e, bool across, FftRecord r, int64_t pairs, int64_t outers,
             std::vector<Address> operands, bool last = false) {
    const int64_t blocks = (pairs + schedule.pairs - 1) / schedule.pairs, count = blocks * outers;
    if (count > std::numeric_limits<int32_t>::max()) return too_far("fft");
    r.blocks = divisor(blocks), r.count = static_cast<uint32_t>(count), r.pairs = static_cast<int32_t>(pairs);
    PipelineRequest request;
    const std::string name = shader_for(shader, fp16);
    request.shader = name;
    if (last && post_op.there())
      request.post_op = &post_op.text, operands.insert(operands.end(), post_op.operands.begin(), post_op.operands.end());
    append(request.constants, {schedule.threads, 1, 1, static_cast<int64_t>(e.activation), e.scale, e.bias, e.residuals_before,
                               e.residuals_after, schedule.rows, schedule.columns, schedule.pairs, across});
    for (const int64_t points : {schedule.columns, schedule.rows})
      for (const uint32_t radix : fft_passes(points)) request.constants.push_back(radix);
    SPARKLE_TRY(pipeline, shop.pipelines->get(request));
    SPARKLE_TRY(record, last ? upload_with(shop, &r, sizeof r, post_op) : shop.upload(&r, sizeof r));
    Dispatch d;
    d.pipeline = pipeline;
    d.groups = flat_groups(count);
    d.addresses = std::move(operands);
    d.push(record->address());
    d.push(roots);
    d.push(offsets);
    kernel.dispatches.push_back(std::move(d));
    kernel.records.push_back(std::move(record));
    return ok();
  }

  // Filters at their frequencies: a constant's are packed, others are made at each run.
  Status add_filters(const FftPacked& packed, bool constant, Address to) {
    const TensorDesc& w = stage.inputs[1];
    if (constant) {
      const FftAxis &h = cut.height, &v = cut.width;
      std::string key = "vulkan.fft:" + schedule.variant;
      for (const int64_t number : {cut.rows, cut.columns, cut.groups, packed.outers, packed.pair, packed.frequency,
                                   packed.outer, h.first, h.filter, h.dilation, v.first, v.filter, v.dilation})
        key += "," + std::to_string(number);
      key += ":" + std::string(name_of(w.dtype)) + w.shape.to_string() + "@" + w.layout.strides.to_string() + "+" +
             std::to_string(w.layout.offset);
      kernel.packings.push_back({1, packed.floats * 4, std::move(key), packed});
      return ok();
    }
    FftRecord r = fft_record(stage, cut);
    r.channels = static_cast<int32_t>(cut.whole ? 1 : cut.depth);
    r.outers = divisor(packed.outers);
    r.out_pair = static_cast<int32_t>(packed.pair), r.out_frequency = static_cast<int32_t>(packed.frequency);
    r.out_outer = static_cast<int32_t>(packed.outer);
    r.factor = static_cast<float>(0.25 / static_cast<double>(cut.rows * cut.columns));
    // Columns up to a whole tile of the product are zeros.
    const int64_t pairs = cut.whole ? cut.pairs_out() : packed.outer / 4;
    return add("fft_filter", {}, false, r, pairs, cut.groups * packed.outers, {{0}, {1}, to, {0}, {0}, {0}, {0}});
  }

  Status whole(bool constant) {
    const Epilogue& e = get<FftParams>(stage.params).epilogue;
    FftPacked packed{cut, feature_map(stage.inputs[1]), stage.inputs[1].layout.offset};
    packed.given = stage.inputs[1].dtype;
    packed.pair = cut.frequencies * 4, packed.frequency = 4;
    packed.floats = cut.pairs_out() * packed.pair;
    if (packed.floats > std::numeric_limits<int32_t>::max()) return too_far("fft");
    if (!constant) kernel.workspace = packed.floats * 4;
    SPARKLE_CHECK(add_filters(packed, constant, {kWorkspace, 0}));
    std::vector<Address> operands = addresses_of(stage, e);
    if (!constant) operands[1] = {kWorkspace, 0};
    const bool across = feature_map(stage.inputs[0]).channel_stride == 1;
    return add("fft_whole", e, across, fft_record(stage, cut), cut.pairs_in(), cut.tiles, std::move(operands), true);
  }

  Status points(bool constant) {
    const Epilogue& e = get<FftParams>(stage.params).epilogue;
    const int64_t k = 4 * cut.pairs_in(), n = 4 * cut.pairs_out(), matrices = cut.frequencies * cut.groups;
    if (matrices * cut.tiles * std::max(k, n) > std::numeric_limits<int32_t>::max()) return too_far("fft");
    // Rows are tiles; of x both parts of a number are columns beside each other, and so they are of the products.
    Product product;
    product.tile = schedule.product;
    GemmRecord& m = product.record;
    for (int i = 0; i < 4; ++i) m.rows[i] = m.x_size[i] = m.instances[i] = m.filter_size[i] = m.stride[i] = m.dilation[i] = 1;
    m.m = m.rows[3] = m.x_size[3] = static_cast<int32_t>(cut.tiles);
    m.n = static_cast<int32_t>(n);
    m.k = m.filter_size[3] = static_cast<int32_t>(k);
    m.x_strides[3] = m.k, m.y_strides[3] = m.n;
    m.channel[0] = m.channel[1] = 1;
    m.instances[2] = static_cast<int32_t>(cut.frequencies), m.instances[3] = static_cast<int32_t>(cut.groups);
    m.x_instance[3] = static_cast<int32_t>(cut.tiles * k), m.x_instance[2] = m.x_instance[3] * m.instances[3];
    m.y_instance[3] = static_cast<int32_t>(cut.tiles * n), m.y_instance[2] = m.y_instance[3] * m.instances[3];
    m.w_instance[2] = m.w_instance[3] = 1;  // each has weights of its own
    m.alpha = 1;
    SPARKLE_TRY(real, packed_product(m, schedule.product));
    m = real.record;
    // Both rows of a complex number are made of one.
    for (int32_t& step : m.packed_instance) step /= 2;
    product.packed = product.complex = product.vectors = product.stores = true;

    FftPacked packed{cut, feature_map(stage.inputs[1]), stage.inputs[1].layout.offset};
    packed.given = stage.inputs[1].dtype;
    packed.outers = real.k_padded / 2, packed.pair = 4, packed.outer = m.n_padded;
    packed.frequency = cut.groups * packed.outers * packed.outer;
    packed.floats = cut.frequencies * packed.frequency;
    const Address inputs{kWorkspace, 0}, products{kWorkspace, matrices * cut.tiles * k * 4};
    const Address weights = constant ? Address{1} : Address{kWorkspace, products.offset + matrices * cut.tiles * n * 4};
    kernel.workspace = products.offset + matrices * cut.tiles * n * 4 + (constant ? 0 : packed.floats * 4);

    FftRecord r = fft_record(stage, cut);
    r.out_pair = 4, r.out_frequency = m.x_instance[2], r.out_outer = m.k;
    const bool in_across = feature_map(stage.inputs[0]).channel_stride == 1,
               out_across = feature_map(stage.outputs[0]).channel_stride == 1;
    const int64_t outers = cut.groups * cut.tiles;
    SPARKLE_CHECK(add("fft_input", {}, in_across, r, cut.pairs_in(), outers, {{0}, {0}, inputs, {0}, {0}, {0}, {0}}));
    SPARKLE_CHECK(add_filters(packed, constant, weights));
    if (!constant) kernel.dispatches.back().after_previous = false;
    product.operands = {inputs, weights, products, inputs, inputs, inputs, inputs};
    SPARKLE_CHECK(add_product(kernel, shop, product));
    r.out_frequency = m.y_instance[2], r.out_outer = m.n;
    std::vector<Address> operands = addresses_of(stage, e);
    operands[0] = products;
    return add("fft_output", e, out_across, r, cut.pairs_out(), outers, std::move(operands), true);
  }
};

}  // namespace

Result<VulkanKernelPtr> make_fft(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t constants) {
  const auto* s = get_if<FftTileSchedule>(&schedule);
  if (!s || (s->variant != "whole" && s->variant != "points"))
    return Error{Reason::backend_lacks_variant, "The Vulkan backend has no fft variant '" + variant_of(schedule) + "'."};
  for (const auto* list : {&stage.inputs, &stage.outputs})
    for (const TensorDesc& d : *list)
      if (extent(d.shape, d.layout) > std::numeric_limits<int32_t>::max()) return too_far("fft");
  SPARKLE_TRY(fp16, in_fp16(stage, shop));
  SPARKLE_TRY(post_op, post_op_of(stage, *shop.context));
  SPARKLE_TRY(cut, fft_cut(stage, *s));
  auto kernel = std::make_unique<VulkanKernel>(stage);
  if (stage.outputs[0].elements() == 0) return kernel;
  const bool constant = constants >> 1 & 1;
  Builder builder{stage, *s, shop, cut, *kernel, fp16, std::move(post_op)};
  SPARKLE_CHECK(builder.tables());
  SPARKLE_CHECK(cut.whole ? builder.whole(constant) : builder.points(constant));
  return kernel;
}

}  // namespace sparkle::vulkan
