#include "families/gemm/gemm_shape.h"

#include <algorithm>
#include <cmath>

#include "families/windows/taps.h"

namespace sparkle {
namespace {

constexpr int kMatrixRowGroup = 16;  // rows that matrix units of CPUs take at a time

double up(double a, double b) { return std::ceil(a / b); }

// A dimension of a window: outputs that see all taps, and those at the borders, in classes that see the same ones.
struct Span {
  double inside = 0, border = 0, classes = 0;
  double taps = 0, border_taps = 0;  // of an output
};
Span span_of(const Axis& axis) {
  Span s;
  s.taps = static_cast<double>(axis.filter);
  const int64_t begin = std::clamp<int64_t>((std::max<int64_t>(axis.pad, 0) + axis.stride - 1) / axis.stride, 0, axis.out);
  // The last output whose window ends inside.
  const int64_t room = axis.in + axis.pad - 1 - (axis.filter - 1) * axis.dilation;
  const int64_t end = std::clamp<int64_t>(axis.out - 1 - (room < 0 ? -1 : room / axis.stride), 0, axis.out - begin);
  s.border = static_cast<double>(begin + end);
  s.inside = static_cast<double>(axis.out) - s.border;
  const auto classes = [&](int64_t outputs) {
    return up(static_cast<double>(outputs),
              std::max(1.0, up(static_cast<double>(axis.dilation), static_cast<double>(axis.stride))));
  };
  s.classes = classes(begin) + classes(end);
  if (s.border > 0) s.border_taps = std::max(0.0, taps_inside(axis) - s.inside * s.taps) / s.border;
  return s;
}

}  // namespace

std::array<std::vector<TapRange>, 3> tap_ranges(const Window& window, const FeatureMap& x, const FeatureMap& y) {
  const Triple in{x.d, x.h, x.w}, out{y.d, y.h, y.w};
  std::array<std::vector<TapRange>, 3> ranges;
  for (size_t i = 0; i < 3; ++i)
    ranges[i] = tap_ranges({in[i], out[i], window.filter[i], window.stride[i], window.dilation[i], window.pad_begin[i]});
  return ranges;
}

int64_t run_of_k(const GemmParams& params, const TensorDesc& x) {
  if (params.loader == Loader::dense) return x.shape[x.shape.size() - 1];
  const int64_t channels = x.shape[1] / std::max<int64_t>(1, params.groups);
  return params.groups == 1 && params.window.dilation[2] == 1 ? channels * params.window.filter[2] : channels;
}

int64_t stride_from_end(const TensorDesc& desc, int axis) {
  const int at = desc.shape.size() - 1 - axis;
  return at < 0 || desc.shape[at] == 1 ? 0 : desc.layout.strides[at];
}

GemmSizes gemm_sizes(const GemmParams& params, const std::vector<TensorDesc>& inputs, const TensorDesc& output) {
  GemmSizes sizes;
  if (params.loader == Loader::dense) {
    const int rank = output.shape.size();
    const TensorDesc& a = inputs[0];
    sizes.m = output.shape[rank - 2];
    sizes.n = output.shape[rank - 1];
    sizes.k = a.shape[a.shape.size() - 1];
    for (int i = 0; i < rank - 2; ++i) {
      const int64_t size = output.shape[i];
      if (size == 0) sizes.m = 0;
      // Batch axes along which the right operand stays the same are rows like any others.
      if (stride_from_end(inputs[1], rank - 1 - i) == 0) {
        sizes.m *= size;
      } else {
        sizes.instances *= size;
      }
    }
    sizes.weight_matrices = sizes.instances;
    sizes.k_steps = static_cast<double>(sizes.m) * static_cast<double>(sizes.k);
    return sizes;
  }
  const FeatureMap x = feature_map(inputs[0]), y = feature_map(output);
  sizes.instances = sizes.weight_matrices = params.groups;
  sizes.m = y.n * y.pixels();
  sizes.n = y.c / params.groups;
  sizes.k = x.c / params.groups * params.window.taps();
  double taps = 1;
  const Triple in{x.d, x.h, x.w}, out{y.d, y.h, y.w};
  const Window& w = params.window;
  for (size_t i = 0; i < 3; ++i) taps *= taps_inside({in[i], out[i], w.filter[i], w.stride[i], w.dilation[i], w.pad_begin[i]});
  sizes.k_steps = static_cast<double>(y.n) * taps * static_cast<double>(x.c / params.groups);
  return sizes;
}

GemmRows gemm_rows(const GemmParams& p, const Stage& stage, const GemmSizes& sizes, int mr, double a_bytes) {
  GemmRows r;
  const auto m = static_cast<double>(sizes.m), instances = static_cast<double>(sizes.instances);
  const auto pairs = [&](double straight) { return std::floor(straight / (2 * mr)) * 2 * mr / std::max(1.0, straight); };
  r.tile = mr * (m > 0 ? sizes.k_steps / m : 0) * a_bytes;
  if (p.loader == Loader::dense) {
    r.tiles = r.lines = std::max(1.0, up(m, mr));
    r.steps = r.tiles * static_cast<double>(sizes.k);
    r.group_steps = up(m, kMatrixRowGroup) * kMatrixRowGroup * static_cast<double>(sizes.k);
    r.paired = pairs(m);
    r.input = r.window = m * static_cast<double>(sizes.k) * a_bytes;
    return r;
  }
  const FeatureMap x = feature_map(stage.inputs[0]), y = feature_map(stage.outputs[0]);
  const Window& w = p.window;
  const double depth = static_cast<double>(x.c) / instances, channels = depth * a_bytes;
  const Span h = span_of({x.h, y.h, w.filter[1], w.stride[1], w.dilation[1], w.pad_begin[1]}),
             v = span_of({x.w, y.w, w.filter[2], w.stride[2], w.dilation[2], w.pad_begin[2]});
  const double n = static_cast<double>(y.n * y.d), deep = depth * static_cast<double>(w.filter[0]);
  r.tiles = 0;
  const auto box = [&](double count, double rows, double columns, double taps) {
    if (count <= 0 || rows <= 0 || columns <= 0) return;
    const double tiles = count * up(n * rows * columns, mr);
    r.tiles += tiles, r.steps += tiles * taps * deep;
    r.group_steps += count * up(n * rows * columns, kMatrixRowGroup) * kMatrixRowGroup * taps * deep;
  };
  box(1, h.inside, v.inside, h.taps * v.taps);
  if (v.classes > 0) box(v.classes, h.inside, v.border / v.classes, h.taps * v.border_taps);
  if (h.classes > 0) box(h.classes, h.border / h.classes, v.inside, h.border_taps * v.taps);
  if (h.classes > 0 && v.classes > 0)
    box(h.classes * v.classes, h.border / h.classes, v.border / v.classes, h.border_taps * v.border_taps);
  r.tiles = std::max(1.0, r.tiles);
  r.paired = pairs(w.is_pointwise() ? m : v.inside);
  const auto touched = [](int64_t in, int64_t out, int64_t filter, int64_t stride, int64_t dilation) {
    if (dilation > 1 || filter >= stride) return static_cast<double>(in);
    return std::min(static_cast<double>(in), static_cast<double>(out) * static_cast<double>(filter));
  };
  const double columns = touched(x.w, y.w, w.filter[2], w.stride[2], w.dilation[2]);
  r.input = static_cast<double>(x.n * x.d) * touched(x.h, y.h, w.filter[1], w.stride[1], w.dilation[1]) * columns * channels;
  const double taps_h = static_cast<double>(std::min(w.filter[1], x.h));
  r.window = std::min(r.input, static_cast<double>(std::min(x.h, (w.filter[1] - 1) * w.dilation[1] + 1)) * columns * channels);
  r.times = std::max(1.0, taps_h / static_cast<double>(w.stride[1]));
  r.lines = n * static_cast<double>(y.h);
  if (w.dilation[2] == 1)
    r.tile = std::min(r.tile, static_cast<double>((mr - 1) * w.stride[2] + w.filter[2]) * taps_h * deep * a_bytes);
  if (instances > 1) r.line_share = std::max(1.0, 64 / std::max(1.0, channels));
  return r;
}

}  // namespace sparkle
