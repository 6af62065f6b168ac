// The oracle of the pool family: ONNX's MaxPool, AveragePool and LpPool, one output element after another.
// A window that holds no element: maximum gives minus infinity (the lowest value of an integer type), position 0; the mean
// gives 0/0 = NaN, which is what the definition says; the power mean gives 0.
#include "families/pool/pool_reference.h"

#include <cmath>
#include <limits>

#include "families/values/element.h"
#include "families/pool/pool.h"

namespace sparkle {
namespace {

// Element `index` counted from the view's element (0,...,0).
double load(const TensorView& view, int64_t index) {
  return load_element(view.desc.dtype, view.data + (view.desc.layout.offset + index) * size_of(view.desc.dtype));
}
void store(const TensorView& view, int64_t index, double value) {
  store_element(view.desc.dtype, value, view.data + (view.desc.layout.offset + index) * size_of(view.desc.dtype));
}

}  // namespace

void pool_reference(const StageParams& params, std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
  const auto& p = get<PoolParams>(params);
  const Window& window = p.window;
  const TensorView& x = inputs[0];
  const TensorView& y = outputs[0];
  const FeatureMap mx = feature_map(x.desc), my = feature_map(y.desc);
  const Triple size{mx.d, mx.h, mx.w};

  for (int64_t n = 0; n < my.n; ++n)
    for (int64_t c = 0; c < my.c; ++c)
      for (int64_t z = 0; z < my.d; ++z)
        for (int64_t row = 0; row < my.h; ++row)
          for (int64_t col = 0; col < my.w; ++col) {
            const Triple out{z, row, col};
            double best = -std::numeric_limits<double>::infinity(), sum = 0;
            int64_t position = 0, count = 0;
            bool found = false;
            for (int64_t t = 0; t < window.filter[0]; ++t)
              for (int64_t r = 0; r < window.filter[1]; ++r)
                for (int64_t s = 0; s < window.filter[2]; ++s) {
                  const Triple tap{t, r, s};
                  Triple in{};
                  bool inside = true, counted = true;
                  for (size_t i = 0; i < 3; ++i) {
                    in[i] = out[i] * window.stride[i] + tap[i] * window.dilation[i] - window.pad_begin[i];
                    inside = inside && in[i] >= 0 && in[i] < size[i];
                    counted = counted && in[i] >= -window.pad_begin[i] && in[i] < size[i] + window.pad_end[i];
                  }
                  count += p.count_pad ? counted : inside;
                  if (!inside) continue;
                  const double value = load(x, n * mx.image_stride + c * mx.channel_stride + in[0] * mx.plane_stride +
                                                   in[1] * mx.row_stride + in[2] * mx.pixel_stride);
                  if (!found || value > best || std::isnan(value)) {
                    if (!std::isnan(best) || !found) best = value, position = (in[0] * size[1] + in[1]) * size[2] + in[2];
                    found = true;
                  }
                  sum += p.kind == PoolKind::lp ? std::pow(std::abs(value), static_cast<double>(p.p)) : value;
                }
            const int64_t at =
                n * my.image_stride + c * my.channel_stride + z * my.plane_stride + row * my.row_stride + col * my.pixel_stride;
            switch (p.kind) {
              case PoolKind::max: store(y, at, best); break;
              case PoolKind::average: store(y, at, sum / static_cast<double>(count)); break;
              case PoolKind::lp: store(y, at, std::pow(sum, 1 / static_cast<double>(p.p))); break;
            }
            if (outputs.size() > 1) {
              const FeatureMap mi = feature_map(outputs[1].desc);
              const int64_t flat = (n * mx.c + c) * mx.pixels() + position;
              outputs[1].at_origin<int64_t>()[n * mi.image_stride + c * mi.channel_stride + z * mi.plane_stride +
                                              row * mi.row_stride + col * mi.pixel_stride] = flat;
            }
          }
}

}  // namespace sparkle
