#include "backends/cpu/gemm/gemm_geometry.h"

#include <algorithm>

#include "families/gemm/gemm_shape.h"

namespace sparkle::cpu {
namespace {

Error layout_error(std::string what) { return {Reason::layout_not_served, "The gemm kernels need " + std::move(what) + "."}; }

// Drops axes of one element and joins neighbours that count like one axis, so that most stages have one long row axis.
std::vector<RowAxis> joined(const std::vector<RowAxis>& axes) {
  std::vector<RowAxis> result;
  for (const RowAxis& axis : axes) {
    if (axis.count == 1) continue;
    if (!result.empty()) {
      RowAxis& outer = result.back();
      const auto continues = [&](int64_t from, int64_t step) { return from == axis.count * step; };
      if (continues(outer.a, axis.a) && continues(outer.y, axis.y) && continues(outer.residual[0], axis.residual[0]) &&
          continues(outer.residual[1], axis.residual[1])) {
        const int64_t count = outer.count * axis.count;
        outer = axis;
        outer.count = count;
        continue;
      }
    }
    result.push_back(axis);
  }
  return result;
}

void set_axes(RowClass& rows, const std::vector<RowAxis>& axes) {
  rows.rows = 1;
  for (const RowAxis& axis : axes) rows.rows *= axis.count;
  const std::vector<RowAxis> list = joined(axes);
  std::copy(list.begin(), list.end(), rows.axes.end() - static_cast<std::ptrdiff_t>(list.size()));
}

// Joins runs that continue each other and cuts them at multiples of `kc`.
std::vector<std::vector<GemmRun>> in_chunks(const std::vector<GemmRun>& runs, int64_t kc, int chunks) {
  std::vector<GemmRun> merged;
  for (const GemmRun& run : runs) {
    if (!merged.empty()) {
      GemmRun& last = merged.back();
      if (last.a + last.length == run.a && last.k + last.length == run.k) {
        last.length += run.length;
        continue;
      }
    }
    merged.push_back(run);
  }
  std::vector<std::vector<GemmRun>> result(static_cast<size_t>(chunks));
  for (GemmRun run : merged)
    while (run.length > 0) {
      const int64_t chunk = run.k / kc;
      const int64_t length = std::min(run.length, (chunk + 1) * kc - run.k);
      result[static_cast<size_t>(chunk)].push_back({run.a, run.k, length});
      run.a += length, run.k += length, run.length -= length;
    }
  return result;
}

int64_t chunk_length(int64_t k, const GemmSchedule& schedule, int& chunks) {
  const int64_t kc = schedule.kc <= 0 ? k : std::min(schedule.kc, k);
  chunks = k == 0 ? 1 : static_cast<int>((k + kc - 1) / kc);
  return std::max<int64_t>(1, (k + chunks - 1) / chunks);  // chunks of even length
}

void set_panels(GemmGeometry& g, int64_t n, int nr, int64_t lanes) {
  g.n = n;
  const int64_t vectors = (n + lanes - 1) / lanes;
  g.padded_n = vectors * lanes;
  const int64_t count = (vectors + nr - 1) / nr;
  int64_t at = 0;
  for (int64_t i = 0; i < count; ++i) {
    GemmPanel panel;
    panel.vectors = static_cast<int>(vectors / count + (i < vectors % count));
    panel.column = at;
    panel.columns = std::min(n - at, panel.vectors * lanes);
    at += panel.vectors * lanes;
    g.widest = std::max(g.widest, panel.vectors);
    g.panels.push_back(panel);
  }
}

void set_tiles(GemmGeometry& g, int mr) {
  g.tiles = 0;
  for (RowClass& rows : g.classes) {
    rows.first_tile = g.tiles;
    rows.tiles = (rows.rows + mr - 1) / mr;
    for (const auto& runs : rows.chunks) {
      rows.steps.push_back(0);
      for (const GemmRun& run : runs) rows.steps.back() += run.length;
    }
    g.tiles += rows.tiles;
  }
}

// The residual operands of a stage, at most two.
std::vector<const TensorDesc*> residuals_of(const Stage& stage, const Epilogue& e) {
  std::vector<const TensorDesc*> list;
  for (int i = 0; i < e.residuals_before + e.residuals_after; ++i)
    list.push_back(&stage.inputs[static_cast<size_t>(2 + e.scale + e.bias + i)]);
  return list;
}

Status window_geometry(const Stage& stage, const GemmParams& p, const GemmSchedule& schedule, int64_t lanes, GemmGeometry& g) {
  const FeatureMap x = feature_map(stage.inputs[0]), w = feature_map(stage.inputs[1]), y = feature_map(stage.outputs[0]);
  const Window& f = p.window;
  const int64_t group_c = x.c / p.groups, group_k = y.c / p.groups;
  if (x.channel_stride != 1 && x.c > 1)
    return layout_error("channels of the input next to each other (NHWC), not stride " + std::to_string(x.channel_stride));
  if (y.channel_stride != 1 && y.c > 1)
    return layout_error("channels of the output next to each other (NHWC), not stride " + std::to_string(y.channel_stride));

  FeatureMap r[2];
  const auto residuals = residuals_of(stage, p.epilogue);
  for (size_t i = 0; i < residuals.size(); ++i) {
    r[i] = feature_map(*residuals[i]);
    // An axis of size 1 broadcasts whatever its stride.
    if (r[i].n == 1) r[i].image_stride = 0;
    if (r[i].c == 1) r[i].channel_stride = y.c == 1 ? 1 : 0;
    if (r[i].d == 1) r[i].plane_stride = 0;
    if (r[i].h == 1) r[i].row_stride = 0;
    if (r[i].w == 1) r[i].pixel_stride = 0;
    g.residual_strides[i] = r[i].channel_stride;
  }

  g.k = group_c * f.taps();
  g.kc = chunk_length(g.k, schedule, g.chunks);
  set_panels(g, group_k, schedule.nr, lanes);
  g.weights.matrices = g.weights.matrix_count[5] = p.groups;
  g.weights.matrix_strides[5] = group_k * w.image_stride;
  g.weights.k_count = {f.filter[0], f.filter[1], f.filter[2], group_c};
  g.weights.k_strides = {w.plane_stride, w.row_stride, w.pixel_stride, w.channel_stride};
  g.weights.n = group_k;
  g.weights.n_stride = w.image_stride;
  for (int64_t i = 0; i < p.groups; ++i)
    g.instances.push_back({i * group_c * x.channel_stride,
                           i * group_k * y.channel_stride,
                           {i * group_k * r[0].channel_stride, i * group_k * r[1].channel_stride},
                           i,
                           i * g.padded_n});

  const auto ranges = tap_ranges(f, x, y);
  for (const TapRange& d : ranges[0])
    for (const TapRange& h : ranges[1])
      for (const TapRange& v : ranges[2]) {
        RowClass rows;
        set_axes(rows, {{y.n, x.image_stride, y.image_stride, {r[0].image_stride, r[1].image_stride}},
                        {d.size(), f.stride[0] * x.plane_stride, y.plane_stride, {r[0].plane_stride, r[1].plane_stride}},
                        {h.size(), f.stride[1] * x.row_stride, y.row_stride, {r[0].row_stride, r[1].row_stride}},
                        {v.size(), f.stride[2] * x.pixel_stride, y.pixel_stride, {r[0].pixel_stride, r[1].pixel_stride}}});
        rows.a = (d.begin * f.stride[0] - f.pad_begin[0]) * x.plane_stride +
                 (h.begin * f.stride[1] - f.pad_begin[1]) * x.row_stride +
                 (v.begin * f.stride[2] - f.pad_begin[2]) * x.pixel_stride;
        rows.y = d.begin * y.plane_stride + h.begin * y.row_stride + v.begin * y.pixel_stride;
        for (size_t i = 0; i < 2; ++i)
          rows.residual[i] = d.begin * r[i].plane_stride + h.begin * r[i].row_stride + v.begin * r[i].pixel_stride;
        std::vector<GemmRun> runs;
        for (int64_t t0 = d.taps.begin; t0 < d.taps.end; ++t0)
          for (int64_t t1 = h.taps.begin; t1 < h.taps.end; ++t1)
            for (int64_t t2 = v.taps.begin; t2 < v.taps.end; ++t2)
              runs.push_back({t0 * f.dilation[0] * x.plane_stride + t1 * f.dilation[1] * x.row_stride +
                                  t2 * f.dilation[2] * x.pixel_stride,
                              ((t0 * f.filter[1] + t1) * f.filter[2] + t2) * group_c, group_c});
        rows.chunks = in_chunks(runs, g.kc, g.chunks);
        g.classes.push_back(std::move(rows));
      }
  return ok();
}

Status dense_geometry(const Stage& stage, const GemmParams& p, const GemmSchedule& schedule, int64_t lanes, GemmGeometry& g) {
  const TensorDesc &a = stage.inputs[0], &b = stage.inputs[1], &y = stage.outputs[0];
  const int rank = y.shape.size();
  const int64_t n = y.shape[rank - 1];
  if (n > 1 && stride_from_end(y, 0) != 1)
    return layout_error("columns of the output next to each other, not stride " + std::to_string(stride_from_end(y, 0)));
  const auto residuals = residuals_of(stage, p.epilogue);
  for (size_t i = 0; i < residuals.size(); ++i) g.residual_strides[i] = n == 1 ? 1 : stride_from_end(*residuals[i], 0);

  g.k = a.shape.back();
  g.kc = chunk_length(g.k, schedule, g.chunks);
  set_panels(g, n, schedule.nr, lanes);
  g.weights.k_count = {1, 1, 1, g.k};
  g.weights.k_strides = {0, 0, 0, stride_from_end(b, 1)};
  g.weights.n = n;
  g.weights.n_stride = stride_from_end(b, 0);

  // Strides of a along the axes of y, of the copy where k is not contiguous.
  Dims a_stride = Dims::filled(rank, 0);
  for (int i = 0; i < rank - 1; ++i) a_stride[i] = stride_from_end(a, rank - 1 - i);
  if (g.k > 1 && stride_from_end(a, 0) != 1) {
    int64_t step = g.k;
    for (int i = rank - 2; i >= 0; --i) {
      if (a_stride[i] == 0) continue;
      g.copy_a.insert(g.copy_a.begin(), {y.shape[i], a_stride[i], step});
      a_stride[i] = step;
      step *= y.shape[i];
    }
    g.copy_a.push_back({g.k, stride_from_end(a, 0), 1});
    g.copied_a = step;
  }

  const auto axis_at = [&](int i) {
    RowAxis axis{y.shape[i], a_stride[i], stride_from_end(y, rank - 1 - i), {0, 0}};
    for (size_t r = 0; r < residuals.size(); ++r) axis.residual[r] = stride_from_end(*residuals[r], rank - 1 - i);
    return axis;
  };
  // Batch axes that share the right operand are rows, the innermost three of them; the others are instances.
  std::vector<RowAxis> row_axes{axis_at(rank - 2)};
  g.instances.push_back({});
  std::vector<int> instance_axes;
  for (int i = rank - 3; i >= 0; --i) {
    if (y.shape[i] == 1) continue;
    if (stride_from_end(b, rank - 1 - i) == 0 && row_axes.size() < 4) {
      row_axes.insert(row_axes.begin(), axis_at(i));
    } else {
      instance_axes.insert(instance_axes.begin(), i);
    }
  }
  size_t matrix_axis = 6 - instance_axes.size();
  for (int i : instance_axes) {
    const RowAxis axis = axis_at(i);
    const int64_t b_stride = stride_from_end(b, rank - 1 - i);
    g.weights.matrix_count[matrix_axis] = b_stride ? axis.count : 1;
    g.weights.matrix_strides[matrix_axis++] = b_stride;
    if (b_stride) g.weights.matrices *= axis.count;
    std::vector<GemmInstance> next;
    for (const GemmInstance& outer : g.instances)
      for (int64_t j = 0; j < axis.count; ++j)
        next.push_back({outer.a + j * axis.a,
                        outer.y + j * axis.y,
                        {outer.residual[0] + j * axis.residual[0], outer.residual[1] + j * axis.residual[1]},
                        b_stride ? outer.weights * axis.count + j : outer.weights,
                        0});
    g.instances = std::move(next);
  }
  RowClass rows;
  set_axes(rows, row_axes);
  rows.chunks = in_chunks({{0, 0, g.k}}, g.kc, g.chunks);
  g.classes.push_back(std::move(rows));
  return ok();
}

}  // namespace

Result<GemmGeometry> gemm_geometry(const Stage& stage, const GemmSchedule& schedule, int64_t lanes) {
  const auto& p = get<GemmParams>(stage.params);
  GemmGeometry g;
  SPARKLE_CHECK(p.loader == Loader::window ? window_geometry(stage, p, schedule, lanes, g)
                                           : dense_geometry(stage, p, schedule, lanes, g));
  set_tiles(g, schedule.mr);
  g.outputs = stage.outputs[0].elements();
  return g;
}

}  // namespace sparkle::cpu
