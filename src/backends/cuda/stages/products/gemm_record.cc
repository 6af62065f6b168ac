#include "backends/cuda/stages/products/gemm_record.h"

#include <algorithm>

#include "base/round_up.h"
#include "families/gemm/gemm_shape.h"

namespace sparkle::cuda {
namespace {

// Below 2^31 by what the last block of a grid may reach beyond the last element.
constexpr int64_t kMostElements = (int64_t{1} << 31) - (int64_t{1} << 24);

int32_t small(int64_t v) { return static_cast<int32_t>(v); }

void fill(int32_t (&to)[4], std::initializer_list<int64_t> values) {
  int i = 0;
  for (const int64_t v : values) to[i++] = small(v);
}
void fill(int32_t (&to)[3], const Triple& t) {
  for (size_t i = 0; i < 3; ++i) to[i] = small(t[i]);
}

void set_window(GemmSetup& setup, const Stage& stage, const GemmParams& p, int64_t channel_multiple) {
  GemmRecord& g = setup.record;
  const FeatureMap x = feature_map(stage.inputs[0]), y = feature_map(stage.outputs[0]), w = feature_map(stage.inputs[1]);
  const int64_t groups = std::max<int64_t>(1, p.groups), filters = y.c / groups;
  const int64_t rows[3] = {y.d, y.h, y.w}, inputs[3] = {x.d, x.h, x.w};
  for (size_t i = 0; i < 3; ++i) g.rows_by[i] = divisor_of(rows[i]), g.x_size[i] = small(inputs[i]);
  fill(g.x_strides, {x.image_stride, x.plane_stride, x.row_stride, x.pixel_stride});
  fill(g.y_strides, {y.image_stride, y.plane_stride, y.row_stride, y.pixel_stride});
  g.x_channel = small(x.channel_stride), g.y_channel = small(y.channel_stride);
  if (w.c == 1) g.x_channel = 1;
  const EpiloguePlaces places = epilogue_places(p.epilogue);
  for (int i = 0; i < 2; ++i) {
    if (places.residual[i] < 0) continue;
    const FeatureMap r = feature_map(stage.inputs[static_cast<size_t>(places.residual[i])]);
    fill(g.residual_strides[i], {r.image_stride, r.plane_stride, r.row_stride, r.pixel_stride});
    g.residual_channel[i] = small(r.channel_stride);
    g.residual_instance[i][3] = small(filters * r.channel_stride);
  }
  fill(g.filter, p.window.filter);
  fill(g.stride, p.window.stride);
  fill(g.dilation, p.window.dilation);
  fill(g.pad, p.window.pad_begin);
  const int64_t channels = rounded_up(w.c, channel_multiple);
  g.filter_by[0] = divisor_of(p.window.filter[1]), g.filter_by[1] = divisor_of(p.window.filter[2]);
  g.channels_by = divisor_of(channels);
  for (Divisor& d : g.instances_by) d = divisor_of(1);
  g.instances_by[2] = divisor_of(groups);
  g.x_instance[3] = small(w.c * x.channel_stride);
  g.y_instance[3] = small(filters * y.channel_stride);
  g.channel_instance[3] = small(filters);
  g.m = small(y.n * y.pixels()), g.n = small(filters), g.k = small(channels * p.window.taps());
  setup.instances = groups;
  FilterStrides& f = setup.filters;
  f.matrices[3] = groups, f.instance[3] = filters * w.image_stride;
  f.filter = w.image_stride;
  const int64_t size[4] = {p.window.filter[0], p.window.filter[1], p.window.filter[2], w.c};
  const int64_t strides[4] = {w.plane_stride, w.row_stride, w.pixel_stride, w.channel_stride};
  std::copy(std::begin(size), std::end(size), f.size);
  std::copy(std::begin(strides), std::end(strides), f.strides);
}

Status set_dense(GemmSetup& setup, const Stage& stage, const GemmParams& p) {
  GemmRecord& g = setup.record;
  const TensorDesc &a = stage.inputs[0], &b = stage.inputs[1], &y = stage.outputs[0];
  const int rank = y.shape.size();
  const int64_t m = y.shape[rank - 2], k = a.shape[a.shape.size() - 1];
  int64_t rows[4] = {1, 1, 1, m}, instances[4] = {1, 1, 1, 1};
  g.x_strides[3] = small(stride_from_end(a, 1)), g.y_strides[3] = small(stride_from_end(y, 1));
  g.x_channel = k == 1 ? 1 : small(stride_from_end(a, 0)), g.y_channel = small(stride_from_end(y, 0));
  FilterStrides& f = setup.filters;
  f.filter = stride_from_end(b, 0), f.size[3] = k, f.strides[3] = stride_from_end(b, 1);
  const EpiloguePlaces places = epilogue_places(p.epilogue);
  for (int i = 0; i < 2; ++i) {
    if (places.residual[i] < 0) continue;
    const TensorDesc& r = stage.inputs[static_cast<size_t>(places.residual[i])];
    g.residual_strides[i][3] = small(stride_from_end(r, 1)), g.residual_channel[i] = small(stride_from_end(r, 0));
  }
  const bool few = walk_batch(b, y, [&](int from_end, bool of_rows, int place) {
    (of_rows ? rows : instances)[place] = y.shape[rank - 1 - from_end];
    (of_rows ? g.x_strides : g.x_instance)[place] = small(stride_from_end(a, from_end));
    (of_rows ? g.y_strides : g.y_instance)[place] = small(stride_from_end(y, from_end));
    for (int i = 0; i < 2; ++i)
      if (places.residual[i] >= 0)
        (of_rows ? g.residual_strides : g.residual_instance)[i][place] =
            small(stride_from_end(stage.inputs[static_cast<size_t>(places.residual[i])], from_end));
    if (of_rows) return;
    const int64_t stride = stride_from_end(b, from_end);
    f.instance[place] = stride;
    if (stride != 0) f.matrices[place] = y.shape[rank - 1 - from_end];
  });
  if (!few)
    return Error{Reason::layout_not_served, "The CUDA kernels support products with up to four batch axes; reshape them."};
  // Rows are pixels of an image that has them all: place 0 is not bounded, the others are.
  for (size_t i = 0; i < 3; ++i) {
    g.rows_by[i] = divisor_of(rows[i + 1]), g.x_size[i] = small(rows[i + 1]);
    g.instances_by[i] = divisor_of(instances[i + 1]);
    g.filter_by[std::min<size_t>(i, 1)] = divisor_of(1);
  }
  g.channels_by = divisor_of(k);
  g.m = small(rows[0] * rows[1] * rows[2] * rows[3]), g.n = small(y.shape[rank - 1]), g.k = small(k);
  setup.instances = instances[0] * instances[1] * instances[2] * instances[3];
  return ok();
}

}  // namespace

EpiloguePlaces epilogue_places(const Epilogue& e) {
  EpiloguePlaces p;
  int next = 2;
  if (e.scale) p.scale = next++;
  if (e.bias) p.bias = next++;
  for (int i = 0; i < e.residuals(); ++i) p.residual[i] = next++;
  return p;
}

Result<GemmSetup> gemm_setup(const Stage& stage, int64_t channel_multiple, int64_t w_bytes) {
  for (const auto* list : {&stage.inputs, &stage.outputs})
    for (const TensorDesc& d : *list)
      if (extent(d.shape, d.layout) > kMostElements || d.elements() > kMostElements)
        return Error{Reason::layout_not_served,
                     "The CUDA kernels count elements in 31 bits, and an operand spans more; split the batch."};
  const auto& p = get<GemmParams>(stage.params);
  GemmSetup setup;
  GemmRecord& g = setup.record;
  if (p.loader == Loader::window) set_window(setup, stage, p, channel_multiple);
  else SPARKLE_CHECK(set_dense(setup, stage, p));
  const Epilogue& e = p.epilogue;
  g.alpha = static_cast<float>(e.alpha), g.a = static_cast<float>(e.a), g.b = static_cast<float>(e.b);
  g.activation = static_cast<int32_t>(e.activation);
  g.before = e.residuals_before, g.after = e.residuals_after;
  // Rows of w: instances that have a matrix of their own, one behind the other.
  const int64_t row = rounded_up(g.k, 16 / w_bytes);
  g.w_stride = small(row);
  int64_t matrices = 1;
  for (int i = 3; i >= 0; --i) {
    if (setup.filters.matrices[i] == 1) continue;
    g.w_instance[i] = small(matrices * g.n * row);
    matrices *= setup.filters.matrices[i];
  }
  setup.w_elements = matrices * g.n * row;
  if (setup.w_elements > kMostElements)
    return Error{Reason::layout_not_served, "The CUDA kernels count weights in 31 bits, and there are more; split the layer."};
  return setup;
}

}  // namespace sparkle::cuda
