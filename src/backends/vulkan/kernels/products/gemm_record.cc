#include "backends/vulkan/kernels/products/gemm_record.h"

#include <algorithm>
#include <limits>

#include "families/common.h"
#include "families/gemm/gemm_shape.h"

namespace sparkle::vulkan {
namespace {

Error too_large() {
  return {Reason::layout_not_served,
          "The Vulkan kernels count elements in 31 bits, and an operand spans more; split the batch."};
}

// Below 2^31 by what the last workgroup of a grid may reach beyond the last element.
constexpr int64_t kMostElements = (int64_t{1} << 31) - (int64_t{1} << 24);

// All strides of the stage's operands reach less than that.
bool counts_in_31_bits(const Stage& stage) {
  for (const auto* list : {&stage.inputs, &stage.outputs})
    for (const TensorDesc& d : *list)
      if (extent(d.shape, d.layout) > kMostElements) return false;
  return true;
}

void fill(int32_t (&to)[4], std::initializer_list<int64_t> values) {
  int i = 0;
  for (const int64_t v : values) to[i++] = static_cast<int32_t>(v);
}

GemmRecord window_record(const Stage& stage, const GemmParams& p) {
  GemmRecord g{};
  const FeatureMap x = feature_map(stage.inputs[0]), y = feature_map(stage.outputs[0]), w = feature_map(stage.inputs[1]);
  const int64_t channels = w.c, filters = y.c / std::max<int64_t>(1, p.groups);
  fill(g.rows, {y.n, y.d, y.h, y.w});
  fill(g.x_size, {x.n, x.d, x.h, x.w});
  fill(g.x_strides, {x.image_stride, x.plane_stride, x.row_stride, x.pixel_stride});
  fill(g.y_strides, {y.image_stride, y.plane_stride, y.row_stride, y.pixel_stride});
  int64_t residual_channel[2] = {0, 0};
  const int first = 2 + p.epilogue.scale + p.epilogue.bias;
  for (int i = 0; i < p.epilogue.residuals_before + p.epilogue.residuals_after; ++i) {
    const FeatureMap r = feature_map(stage.inputs[static_cast<size_t>(first + i)]);
    fill(g.r_strides[i], {r.image_stride, r.plane_stride, r.row_stride, r.pixel_stride});
    residual_channel[i] = r.channel_stride;
  }
  fill(g.channel, {x.channel_stride, y.channel_stride, residual_channel[0], residual_channel[1]});
  const Window& f = p.window;
  fill(g.filter_size, {f.filter[0], f.filter[1], f.filter[2], channels});
  fill(g.stride, {f.stride[0], f.stride[1], f.stride[2]});
  fill(g.dilation, {f.dilation[0], f.dilation[1], f.dilation[2]});
  fill(g.pad, {f.pad_begin[0], f.pad_begin[1], f.pad_begin[2]});
  fill(g.w_strides, {w.plane_stride, w.row_stride, w.pixel_stride, w.channel_stride});
  g.w_filter_stride = static_cast<int32_t>(w.image_stride);
  fill(g.instances, {1, 1, 1, p.groups});
  g.x_instance[3] = static_cast<int32_t>(channels * x.channel_stride);
  g.w_instance[3] = static_cast<int32_t>(filters * w.image_stride);
  g.y_instance[3] = static_cast<int32_t>(filters * y.channel_stride);
  for (int i = 0; i < 2; ++i) g.r_instance[i][3] = static_cast<int32_t>(filters * residual_channel[i]);
  g.m = static_cast<int32_t>(y.n * y.pixels());
  g.n = static_cast<int32_t>(filters);
  g.k = static_cast<int32_t>(channels * f.taps());
  g.channel_instance = g.n;
  return g;
}

Result<GemmRecord> dense_record(const Stage& stage, const GemmParams& p) {
  GemmRecord g{};
  const TensorDesc &a = stage.inputs[0], &b = stage.inputs[1], &y = stage.outputs[0];
  const int rank = y.shape.size(), first = 2 + p.epilogue.scale + p.epilogue.bias;
  const int residuals = p.epilogue.residuals_before + p.epilogue.residuals_after;
  g.m = static_cast<int32_t>(y.shape[rank - 2]);
  g.n = static_cast<int32_t>(y.shape[rank - 1]);
  g.k = static_cast<int32_t>(a.shape[a.shape.size() - 1]);
  for (int i = 0; i < 4; ++i) g.rows[i] = g.x_size[i] = g.instances[i] = g.filter_size[i] = g.stride[i] = g.dilation[i] = 1;
  g.rows[3] = g.x_size[3] = g.m;
  g.filter_size[3] = g.k;
  g.x_strides[3] = static_cast<int32_t>(stride_from_end(a, 1));
  g.y_strides[3] = static_cast<int32_t>(stride_from_end(y, 1));
  fill(g.channel, {stride_from_end(a, 0), stride_from_end(y, 0), 0, 0});
  g.w_filter_stride = static_cast<int32_t>(stride_from_end(b, 0));
  g.w_strides[3] = static_cast<int32_t>(stride_from_end(b, 1));
  for (int i = 0; i < residuals; ++i) {
    const OperandStrides r = operand_strides(stage, stage.inputs[static_cast<size_t>(first + i)]);
    std::copy(std::begin(r.row), std::end(r.row), g.r_strides[i]);
    std::copy(std::begin(r.instance), std::end(r.instance), g.r_instance[i]);
    g.channel[2 + i] = r.channel;
  }
  const bool few = walk_batch(b, y, [&](int from_end, bool of_rows, int place) {
    const auto size = static_cast<int32_t>(y.shape[rank - 1 - from_end]);
    const auto a_stride = static_cast<int32_t>(stride_from_end(a, from_end)),
               y_strides = static_cast<int32_t>(stride_from_end(y, from_end));
    if (of_rows) {
      g.rows[place] = g.x_size[place] = size;
      g.x_strides[place] = a_stride, g.y_strides[place] = y_strides;
      g.m *= size;
    } else {
      g.instances[place] = size;
      g.x_instance[place] = a_stride, g.y_instance[place] = y_strides;
      g.w_instance[place] = static_cast<int32_t>(stride_from_end(b, from_end));
    }
  });
  if (!few)
    return Error{Reason::layout_not_served, "The Vulkan kernels support products with up to four batch axes; reshape them."};
  return g;
}

}  // namespace

void GemmRecord::set_divisors() {
  for (int i = 0; i < 3; ++i) rows_by[i] = divisor(rows[i + 1]), instances_by[i] = divisor(instances[i + 1]);
}

OperandStrides operand_strides(const Stage& stage, const TensorDesc& operand) {
  OperandStrides p;
  const auto* product = get_if<GemmParams>(&stage.params);
  if (!product || product->loader == Loader::window) {
    const FeatureMap m = feature_map(operand);
    fill(p.row, {m.image_stride, m.plane_stride, m.row_stride, m.pixel_stride});
    p.channel = static_cast<int32_t>(m.channel_stride);
    return p;
  }
  const auto stride = [&](int from_end) { return static_cast<int32_t>(stride_from_end(operand, from_end)); };
  p.row[3] = stride(1), p.channel = stride(0);
  walk_batch(stage.inputs[1], stage.outputs[0],
             [&](int from_end, bool of_rows, int place) { (of_rows ? p.row : p.instance)[place] = stride(from_end); });
  return p;
}

Result<GemmRecord> gemm_record(const Stage& stage) {
  if (!counts_in_31_bits(stage)) return too_large();
  const auto& p = get<GemmParams>(stage.params);
  GemmRecord g{};
  if (p.loader == Loader::window) {
    g = window_record(stage, p);
  } else {
    SPARKLE_TRY(dense, dense_record(stage, p));
    g = dense;
  }
  g.alpha = static_cast<float>(p.epilogue.alpha);
  g.a = static_cast<float>(p.epilogue.a);
  g.b = static_cast<float>(p.epilogue.b);
  g.set_divisors();
  return g;
}

bool in_vectors(int32_t wide, const TensorDesc& desc, std::span<const int32_t> strides, int32_t channel, int64_t count) {
  if (channel != 1 || count % wide != 0 || desc.layout.offset % wide != 0) return false;
  return std::all_of(strides.begin(), strides.end(), [&](int32_t p) { return p % wide == 0; });
}

}  // namespace sparkle::vulkan
