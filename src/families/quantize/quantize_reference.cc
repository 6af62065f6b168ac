// The definition of the quantize family: plain loops in fp32, the steps and their order as the specification writes them.
#include "families/quantize/quantize_reference.h"

#include <cmath>
#include <limits>

#include "families/values/element.h"
#include "families/integers/integers.h"
#include "families/quantize/quantize.h"
#include "families/loops/walk.h"

namespace sparkle {
namespace {

double load(const TensorView& view, const Dims& at) { return load_element(view.desc.dtype, element_at(view, at)); }
void store(const TensorView& view, const Dims& at, double value) {
  store_element(view.desc.dtype, value, element_at(view, at));
}
float real(const TensorView& view, const Dims& at) { return static_cast<float>(load(view, at)); }
int32_t whole(const TensorView& view, const Dims& at) { return static_cast<int32_t>(load(view, at)); }

// Where scale and zero point of an element lie.
Dims parameter_index(const QuantizeParams& p, const Dims& at) {
  Dims index = at;
  if (p.block > 0) index[p.axis] /= p.block;
  return index;
}

// The quotient in the precision of the scale, as the specification asks.
float quotient(double x, const TensorView& scale, const Dims& at) {
  const float divisor = real(scale, at), value = static_cast<float>(x) / divisor;
  if (scale.desc.dtype == DType::f32 || scale.desc.dtype == DType::f8e8m0) return value;
  std::byte rounded[8];
  store_element(scale.desc.dtype, static_cast<double>(value), rounded);
  return static_cast<float>(load_element(scale.desc.dtype, rounded));
}

void quantize_to_float(const QuantizeParams& p, std::span<const TensorView> inputs, const TensorView& y) {
  for_each_index(y.desc.shape, [&](const Dims& at) {
    const Dims from = parameter_index(p, at);
    double value = static_cast<double>(quotient(load(inputs[0], at), inputs[1], from)) + load(inputs[2], from);
    if (p.clip && value < static_cast<double>(p.low)) value = static_cast<double>(p.low);
    if (p.clip && value > static_cast<double>(p.high)) value = static_cast<double>(p.high);
    store(y, at, value);
  });
}

void quantize(const QuantizeParams& p, std::span<const TensorView> inputs, const TensorView& y) {
  if (is_narrow_float(y.desc.dtype)) return quantize_to_float(p, inputs, y);
  const IntegerRange range = output_range(y.desc.dtype, p);
  for_each_index(y.desc.shape, [&](const Dims& at) {
    const Dims from = parameter_index(p, at);
    store(y, at, quantized(quotient(load(inputs[0], at), inputs[1], from), 1.0f, whole(inputs[2], from), range));
  });
}

void dequantize(const QuantizeParams& p, std::span<const TensorView> inputs, const TensorView& y) {
  for_each_index(y.desc.shape, [&](const Dims& at) {
    const Dims from = parameter_index(p, at);
    const double difference = load(inputs[0], at) - load(inputs[2], from);
    store(y, at, static_cast<double>(static_cast<float>(difference) * real(inputs[1], from)));
  });
}

void dynamic(std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
  float least = 0, most = 0;
  for_each_index(inputs[0].desc.shape, [&](const Dims& at) {
    least = std::min(least, real(inputs[0], at)), most = std::max(most, real(inputs[0], at));
  });
  const DynamicScale found = dynamic_scale(least, most);
  for_each_index(inputs[0].desc.shape, [&](const Dims& at) {
    store(outputs[0], at, quantized(real(inputs[0], at), found.scale, found.zero, {0, 255}));
  });
  store(outputs[1], {}, static_cast<double>(found.scale));
  store(outputs[2], {}, found.zero);
}

void add(const QuantizeParams& p, std::span<const TensorView> inputs, const TensorView& y) {
  const IntegerRange range = output_range(y.desc.dtype, p);
  for_each_index(y.desc.shape, [&](const Dims& at) {
    const float a = static_cast<float>(whole(inputs[0], at) - whole(inputs[2], {})) * real(inputs[1], {});
    const float b = static_cast<float>(whole(inputs[3], at) - whole(inputs[5], {})) * real(inputs[4], {});
    store(y, at, quantized(a + b, real(inputs[6], {}), whole(inputs[7], {}), range));
  });
}

void average(const QuantizeParams& p, std::span<const TensorView> inputs, const TensorView& y) {
  const IntegerRange range = output_range(y.desc.dtype, p);
  const TensorView& x = inputs[0];
  Dims map = x.desc.shape;
  map[0] = map[1] = 1;
  const int64_t pixels = map.product();
  const float factor = real(inputs[1], {}) / (static_cast<float>(pixels) * real(inputs[3], {}));
  for_each_index(y.desc.shape, [&](const Dims& at) {
    int64_t sum = -pixels * whole(inputs[2], {});
    for_each_index(map, [&](const Dims& pixel) {
      Dims from = pixel;
      from[0] = at[0], from[1] = at[1];
      sum += whole(x, from);
    });
    store(y, at, requantized(static_cast<int32_t>(sum), factor, whole(inputs[4], {}), range));
  });
}

void factor(std::span<const TensorView> inputs, const TensorView& y) {
  for_each_index(y.desc.shape, [&](const Dims& at) {
    store(y, at, static_cast<double>(real(inputs[0], at) * real(inputs[1], at) / real(inputs[2], at)));
  });
}

}  // namespace

void quantize_reference(const StageParams& params, std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
  const auto& p = get<QuantizeParams>(params);
  switch (p.kind) {
    case QuantizeKind::quantize: return quantize(p, inputs, outputs[0]);
    case QuantizeKind::dequantize: return dequantize(p, inputs, outputs[0]);
    case QuantizeKind::dynamic: return dynamic(inputs, outputs);
    case QuantizeKind::add: return add(p, inputs, outputs[0]);
    case QuantizeKind::average: return average(p, inputs, outputs[0]);
    case QuantizeKind::factor: return factor(inputs, outputs[0]);
  }
}

}  // namespace sparkle
