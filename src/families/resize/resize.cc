// Formulas of ONNX Resize, opsets 10 to 19: https://onnx.ai/onnx/operators/onnx__Resize.html
#include "families/resize/resize.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "families/resize/resize_taps.h"

namespace sparkle {
namespace {

constexpr std::array<std::string_view, 3> kModes = {"nearest", "linear", "cubic"};
constexpr std::array<std::string_view, 6> kCoordinates = {"half_pixel",    "half_pixel_symmetric", "pytorch_half_pixel",
                                                          "align_corners", "asymmetric",           "tf_crop"};
constexpr std::array<std::string_view, 5> kNearest = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "per_axis"};

template <class Enum, size_t n>
bool parse_one_of(const std::array<std::string_view, n>& names, std::string_view text, Enum& value) {
  const auto at = std::find(names.begin(), names.end(), text);
  if (at == names.end()) return false;
  value = static_cast<Enum>(at - names.begin());
  return true;
}

double scale_of(const ResizeParams& params, int axis, int64_t in_size, int64_t out_size) {
  const auto i = static_cast<size_t>(axis);
  return i < params.scales.size() ? params.scales[i] : static_cast<double>(out_size) / static_cast<double>(in_size);
}
double roi_begin(const ResizeParams& params, int axis) {
  const auto i = static_cast<size_t>(axis);
  return i < params.roi_begin.size() ? params.roi_begin[i] : 0;
}
double roi_end(const ResizeParams& params, int axis) {
  const auto i = static_cast<size_t>(axis);
  return i < params.roi_end.size() ? params.roi_end[i] : 1;
}

bool keeps_axis(const ResizeParams& params, int axis, int64_t in_size, int64_t out_size) {
  if (in_size != out_size || std::abs(scale_of(params, axis, in_size, out_size) - 1) > 1e-9) return false;
  return params.coordinates != ResizeCoordinates::tf_crop || (roi_begin(params, axis) == 0 && roi_end(params, axis) == 1);
}

constexpr double kLongest = 1e15;  // no axis is longer: positions and filters beyond it say nothing more

// The index below a position, which may lie anywhere or be no number.
int64_t floored(double position) {
  return position == position ? static_cast<int64_t>(std::floor(std::clamp(position, -kLongest, kLongest))) : 0;
}

bool is_widened(const ResizeParams& params, int axis, int64_t in_size, int64_t out_size, int64_t count) {
  return params.antialias && count > 1 && scale_of(params, axis, in_size, out_size) < 1;
}

// Keys' cubic convolution kernel at distances 1 + t, t, 1 - t and 2 - t.
std::array<double, 4> cubic_weights(double a, double t) {
  const auto near = [a](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
  const auto far = [a](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  return {far(1 + t), near(t), near(1 - t), far(2 - t)};
}

// Keys' kernel at any distance.
double cubic_weight(double a, double distance) {
  const double d = std::abs(distance);
  if (d < 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

// The widened filter of an axis that shrinks: it reaches 1 / scale as far, and its weights add up to 1.
void widened_taps(const ResizeParams& params, double scale, double position, int64_t in_size, ResizeTaps& taps) {
  const double reach = params.mode == ResizeMode::linear ? 1 : 2;
  const int64_t below = floored(position);
  const int64_t half = taps.count / 2;
  double sum = 0;
  const size_t first = taps.weight.size();
  for (int64_t at = below + 1 - half; at <= below + half; ++at) {
    const double distance = (static_cast<double>(at) - position) * scale;
    double weight = reach == 1 ? std::max(0.0, 1 - std::abs(distance)) : cubic_weight(params.cubic_a, distance);
    if (params.exclude_outside && (at < 0 || at >= in_size)) weight = 0;
    sum += weight;
    taps.index.push_back(std::clamp<int64_t>(at, 0, std::max<int64_t>(in_size - 1, 0)));
    taps.weight.push_back(weight);
  }
  if (sum != 0)
    for (size_t i = first; i < taps.weight.size(); ++i) taps.weight[i] /= sum;
}

}  // namespace

std::string_view name_of(ResizeMode mode) { return kModes[static_cast<size_t>(mode)]; }
bool parse_name(std::string_view text, ResizeMode& mode) { return parse_one_of(kModes, text, mode); }
std::string_view name_of(ResizeCoordinates coordinates) { return kCoordinates[static_cast<size_t>(coordinates)]; }
bool parse_name(std::string_view text, ResizeCoordinates& coordinates) { return parse_one_of(kCoordinates, text, coordinates); }
std::string_view name_of(ResizeNearest nearest) { return kNearest[static_cast<size_t>(nearest)]; }
bool parse_name(std::string_view text, ResizeNearest& nearest) { return parse_one_of(kNearest, text, nearest); }

double source_position(const ResizeParams& params, int axis, int64_t out, int64_t in_size, int64_t out_size) {
  if (keeps_axis(params, axis, in_size, out_size)) return static_cast<double>(out);
  const double scale = scale_of(params, axis, in_size, out_size);
  const auto at = static_cast<double>(out), in = static_cast<double>(in_size);
  // ONNX measures the resized axis before rounding: 4 elements at scale 0.6 are 2.4 long, though 2 are stored.
  const double length = scale * in;
  const bool single = std::abs(length - 1) < 1e-6;
  switch (params.coordinates) {
    case ResizeCoordinates::half_pixel: return (at + 0.5) / scale - 0.5;
    case ResizeCoordinates::half_pixel_symmetric: {
      const double adjustment = static_cast<double>(out_size) / length;
      return in / 2 * (1 - adjustment) + (at + 0.5) / scale - 0.5;
    }
    case ResizeCoordinates::pytorch_half_pixel: return single ? 0 : (at + 0.5) / scale - 0.5;
    case ResizeCoordinates::align_corners: return single ? 0 : at * (in - 1) / (length - 1);
    case ResizeCoordinates::asymmetric: return at / scale;
    case ResizeCoordinates::tf_crop: {
      const double begin = roi_begin(params, axis), end = roi_end(params, axis);
      const double inside = single ? (end - begin) * (in - 1) / 2 : at * (end - begin) * (in - 1) / (length - 1);
      return begin * (in - 1) + inside;
    }
  }
  return 0;
}

ResizeNearest rule_along(ResizeNearest rule, double scale) {
  if (rule != ResizeNearest::per_axis) return rule;
  return scale < 1 ? ResizeNearest::ceil : ResizeNearest::floor;
}

int64_t nearest_index(ResizeNearest rule, double position, int64_t in_size) {
  const double below = std::floor(position), fraction = position - below;
  bool up = false;
  switch (rule) {
    case ResizeNearest::round_prefer_floor: up = fraction > 0.5; break;
    case ResizeNearest::round_prefer_ceil: up = fraction >= 0.5; break;
    case ResizeNearest::floor:
    case ResizeNearest::per_axis: break;
    case ResizeNearest::ceil: up = fraction > 0; break;
  }
  return std::clamp<int64_t>(floored(below) + up, 0, std::max<int64_t>(in_size - 1, 0));
}

ResizeAxis resize_axis(const ResizeParams& params, int axis, int64_t in_size, int64_t out_size) {
  ResizeAxis a;
  a.identity = keeps_axis(params, axis, in_size, out_size);
  a.count = a.identity || params.mode == ResizeMode::nearest ? 1 : params.mode == ResizeMode::linear ? 2 : 4;
  if (is_widened(params, axis, in_size, out_size, a.count))
    a.count *= static_cast<int64_t>(std::ceil(std::min(1 / scale_of(params, axis, in_size, out_size), kLongest)));
  return a;
}

ResizeTaps resize_taps(const ResizeParams& params, int axis, int64_t in_size, int64_t out_size) {
  ResizeTaps taps{resize_axis(params, axis, in_size, out_size), {}, {}, {}};
  const double scale = scale_of(params, axis, in_size, out_size);
  const bool widened = is_widened(params, axis, in_size, out_size, taps.count);
  const ResizeNearest rule = rule_along(params.nearest, scale);
  if (params.coordinates == ResizeCoordinates::tf_crop) taps.outside.assign(static_cast<size_t>(out_size), 0);
  for (int64_t out = 0; out < out_size; ++out) {
    const double position = source_position(params, axis, out, in_size, out_size);
    if (!taps.outside.empty() && (position < 0 || position > static_cast<double>(in_size - 1)))
      taps.outside[static_cast<size_t>(out)] = 1;
    const int64_t below = floored(position);
    const double t = position - std::floor(position);
    if (widened) {
      widened_taps(params, scale, position, in_size, taps);
    } else if (taps.count == 1) {
      taps.index.push_back(taps.identity ? out : nearest_index(rule, position, in_size));
      taps.weight.push_back(1);
    } else if (taps.count == 2) {
      for (int64_t i = 0; i < 2; ++i) {
        taps.index.push_back(std::clamp<int64_t>(below + i, 0, std::max<int64_t>(in_size - 1, 0)));
        taps.weight.push_back(i ? t : 1 - t);
      }
    } else {
      std::array<double, 4> weight = cubic_weights(params.cubic_a, t);
      double sum = 0;
      for (int64_t i = 0; i < 4; ++i) {
        const int64_t at = below - 1 + i;
        double& w = weight[static_cast<size_t>(i)];
        if (params.exclude_outside && (at < 0 || at >= in_size)) w = 0;
        sum += w;
        taps.index.push_back(std::clamp<int64_t>(at, 0, std::max<int64_t>(in_size - 1, 0)));
      }
      // Without the taps outside, the rest is scaled up to a sum of 1; no tap inside leaves zeros.
      for (double w : weight) taps.weight.push_back(params.exclude_outside && sum != 0 ? w / sum : w);
    }
  }
  if (std::find(taps.outside.begin(), taps.outside.end(), 1) == taps.outside.end()) taps.outside.clear();
  return taps;
}

}  // namespace sparkle
