// The resize family: sampling of x at other sizes (ONNX Resize). Operands: x -> y, same rank.
#pragma once

#include <vector>

#include "base/record.h"
#include "base/tensor.h"

namespace sparkle {

enum class ResizeMode : uint8_t { nearest, linear, cubic };
enum class ResizeCoordinates : uint8_t {
  half_pixel,
  half_pixel_symmetric,
  pytorch_half_pixel,
  align_corners,
  asymmetric,
  tf_crop
};
// per_axis: ceil along axes that shrink, floor along the others, as before opset 11.
enum class ResizeNearest : uint8_t { round_prefer_floor, round_prefer_ceil, floor, ceil, per_axis };
std::string_view name_of(ResizeMode mode);
bool parse_name(std::string_view text, ResizeMode& mode);
std::string_view name_of(ResizeCoordinates coordinates);
bool parse_name(std::string_view text, ResizeCoordinates& coordinates);
std::string_view name_of(ResizeNearest nearest);
bool parse_name(std::string_view text, ResizeNearest& nearest);
// The rule along an axis whose sizes have this ratio: never per_axis.
ResizeNearest rule_along(ResizeNearest rule, double scale);

struct ResizeParams {
  ResizeMode mode = ResizeMode::nearest;
  ResizeCoordinates coordinates = ResizeCoordinates::half_pixel;
  ResizeNearest nearest = ResizeNearest::round_prefer_floor;
  std::vector<double> scales;              // per axis of x: output size / input size before rounding
  std::vector<double> roi_begin, roi_end;  // per axis, tf_crop only; else empty
  double cubic_a = -0.75;
  bool exclude_outside = false;
  double extrapolation = 0;
  bool antialias = false;  // linear and cubic filters are widened where the axis shrinks

  template <class V>
  void visit(V& v) {
    v("mode", mode), v("coordinates", coordinates), v("nearest", nearest), v("scales", scales);
    v("roi_begin", roi_begin), v("roi_end", roi_end), v("cubic_a", cubic_a), v("exclude_outside", exclude_outside);
    v("extrapolation", extrapolation), v("antialias", antialias);
  }
  friend bool operator==(const ResizeParams&, const ResizeParams&) = default;
};

// Position in x (fractional, may lie outside) of output index `out` along an axis: the ONNX coordinate formulas.
double source_position(const ResizeParams& params, int axis, int64_t out, int64_t in_size, int64_t out_size);
// Index in x for nearest sampling of a position, clamped to [0, in_size).
int64_t nearest_index(ResizeNearest rule, double position, int64_t in_size);

}  // namespace sparkle
