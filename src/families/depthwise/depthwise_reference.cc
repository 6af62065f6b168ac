// The oracle of the depthwise family: one output element after another in double precision.
#include "families/depthwise/depthwise_reference.h"

#include <vector>

#include "families/depthwise/depthwise.h"
#include "families/values/element.h"
#include "families/integers/integers.h"

namespace sparkle {
namespace {

// Element `index` counted from the view's element (0,...,0).
double load(const TensorView& view, int64_t index) {
  return load_element(view.desc.dtype, view.data + (view.desc.layout.offset + index) * size_of(view.desc.dtype));
}
void store(const TensorView& view, int64_t index, double value) {
  store_element(view.desc.dtype, value, view.data + (view.desc.layout.offset + index) * size_of(view.desc.dtype));
}

// Stride of the single axis of a per-channel operand [K].
int64_t channel_stride(const TensorDesc& desc) { return desc.layout.strides.empty() ? 0 : desc.layout.strides.back(); }

}  // namespace

void depthwise_reference(const StageParams& params, std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
  const auto& p = get<DepthwiseParams>(params);
  if (inputs[0].desc.dtype == DType::u8 || inputs[0].desc.dtype == DType::i8) {
    const int64_t groups = feature_map(inputs[0].desc).c;
    return integer_window_reference(p.window, groups, p.epilogue, inputs, outputs[0]);
  }
  const Window& window = p.window;
  const Epilogue& e = p.epilogue;
  const TensorView& x = inputs[0];
  const TensorView& w = inputs[1];
  const TensorView& y = outputs[0];
  const FeatureMap mx = feature_map(x.desc), mw = feature_map(w.desc), my = feature_map(y.desc);
  const int64_t multiplier = mx.c > 0 ? my.c / mx.c : 1;

  size_t next = 2;
  const TensorView* scale = e.scale ? &inputs[next++] : nullptr;
  const TensorView* bias = e.bias ? &inputs[next++] : nullptr;
  const std::span<const TensorView> residuals = inputs.subspan(next, static_cast<size_t>(e.residuals()));
  const std::span<const TensorView> more = inputs.subspan(next + residuals.size());

  for (int64_t n = 0; n < my.n; ++n)
    for (int64_t k = 0; k < my.c; ++k)
      for (int64_t z = 0; z < my.d; ++z)
        for (int64_t row = 0; row < my.h; ++row)
          for (int64_t col = 0; col < my.w; ++col) {
            double sum = 0;
            for (int64_t t = 0; t < window.filter[0]; ++t)
              for (int64_t r = 0; r < window.filter[1]; ++r)
                for (int64_t s = 0; s < window.filter[2]; ++s) {
                  const int64_t d = z * window.stride[0] + t * window.dilation[0] - window.pad_begin[0];
                  const int64_t h = row * window.stride[1] + r * window.dilation[1] - window.pad_begin[1];
                  const int64_t c = col * window.stride[2] + s * window.dilation[2] - window.pad_begin[2];
                  if (d < 0 || d >= mx.d || h < 0 || h >= mx.h || c < 0 || c >= mx.w) continue;
                  const int64_t at = n * mx.image_stride + k / multiplier * mx.channel_stride + d * mx.plane_stride +
                                     h * mx.row_stride + c * mx.pixel_stride;
                  const int64_t tap = k * mw.image_stride + t * mw.plane_stride + r * mw.row_stride + s * mw.pixel_stride;
                  sum += load(x, at) * load(w, tap);
                }
            const auto at_pixel = [&](const TensorView& t) {
              const FeatureMap m = feature_map(t.desc);
              return load(t, n * m.image_stride + k * m.channel_stride + z * m.plane_stride + row * m.row_stride +
                                 col * m.pixel_stride);
            };
            double value = e.alpha * sum;
            if (scale) value *= load(*scale, k * channel_stride(scale->desc));
            if (bias) value += load(*bias, k * channel_stride(bias->desc));
            for (size_t i = 0; i < residuals.size(); ++i) {
              if (static_cast<int>(i) == e.residuals_before) value = activate(e.activation, e.a, e.b, value);
              value += at_pixel(residuals[i]);
            }
            if (static_cast<int>(residuals.size()) == e.residuals_before) value = activate(e.activation, e.a, e.b, value);
            if (e.has_post_op()) {
              std::vector<double> values{value};
              for (const TensorView& operand : more) values.push_back(at_pixel(operand));
              value = evaluate(e.post_op, values);
            }
            store(
                y,
                n * my.image_stride + k * my.channel_stride + z * my.plane_stride + row * my.row_stride + col * my.pixel_stride,
                value);
          }
}

}  // namespace sparkle
