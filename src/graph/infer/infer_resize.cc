// Shape rule of Resize: scales or sizes, for all axes or some, with ONNX's policies for keeping the aspect ratio.
#include <cmath>

#include "graph/infer/infer.h"
#include "graph/evaluate/values.h"

namespace sparkle {
namespace {

// Sizes of a scaled axis are computed in single precision, as the scales are stored.
Result<int64_t> scaled(const InferContext& c, double scale, double part, int64_t size) {
  const float length = std::floor(static_cast<float>(size) * static_cast<float>(part) * static_cast<float>(scale));
  if (!(length < 1e15f))
    return c.fail(Reason::size_overflow, "an axis of " + std::to_string(size) + " scaled by " + std::to_string(scale * part) +
                                             " would exceed what can be addressed");
  return length < 0 ? 0 : static_cast<int64_t>(length);
}

}  // namespace

Status infer_rule(InferContext& c, ResizeOp& op) {
  SPARKLE_CHECK(c.expect(1, 4));
  const Dims& x = c.shape(0);
  const int rank = x.size();
  Dims axes;
  bool seen[kMaxRank] = {};
  for (int64_t entry : op.axes) {
    SPARKLE_TRY(axis, c.axis(entry, rank));
    if (seen[axis]) return c.fail(Reason::bad_model, "axis " + std::to_string(axis) + " is named twice");
    seen[axis] = true;
    axes.push_back(axis);
  }
  if (axes.empty())
    for (int i = 0; i < rank; ++i) axes.push_back(i);
  const auto count = static_cast<size_t>(axes.size());
  const auto wrong_count = [&](const char* what, size_t entries) {
    return c.fail(Reason::bad_model, "its " + std::string(what) + " have " + std::to_string(entries) + " entries for " +
                                         std::to_string(count) + " axes of " + c.describe(0));
  };
  // Before opset 11 the second input holds the scales.
  const int scales_at = c.inputs() == 2 ? 1 : 2;
  const auto filled = [&](int i) { return c.given(i) && c.shape(i).product() != 0; };
  if (scales_at == 2 && filled(1) && op.params.coordinates == ResizeCoordinates::tf_crop) {
    SPARKLE_TRY(roi, c.numbers(1, "roi"));
    if (roi.size() != 2 * count) return wrong_count("roi", roi.size());
    for (double bound : roi)
      if (!std::isfinite(bound)) return c.fail(Reason::bad_model, "its roi '" + c.in(1).name + "' is not all finite numbers");
    op.params.roi_begin.assign(static_cast<size_t>(rank), 0);
    op.params.roi_end.assign(static_cast<size_t>(rank), 1);
    for (size_t i = 0; i < count; ++i) {
      const auto axis = static_cast<size_t>(axes[static_cast<int>(i)]);
      op.params.roi_begin[axis] = roi[i];
      op.params.roi_end[axis] = roi[i + count];
    }
  }
  const auto roi_part = [&](int axis) {
    const auto at = static_cast<size_t>(axis);
    return op.params.roi_begin.empty() ? 1.0 : op.params.roi_end[at] - op.params.roi_begin[at];
  };
  Dims y = x;
  if (filled(3)) {
    SPARKLE_TRY(sizes, c.integers(3, "sizes"));
    if (sizes.size() != count) return wrong_count("sizes", sizes.size());
    op.params.scales.assign(static_cast<size_t>(rank), 1);
    double common = 0;  // the one scale of a kept aspect ratio
    for (size_t i = 0; i < count; ++i) {
      const int axis = static_cast<int>(axes[static_cast<int>(i)]);
      SPARKLE_TRY(size, c.size(sizes[i], "its output"));
      y[axis] = size;
      if (x[axis] == 0) continue;
      const double scale = static_cast<double>(size) / static_cast<double>(x[axis]);
      op.params.scales[static_cast<size_t>(axis)] = scale;
      if (i == 0) common = scale;
      common = op.keep == ResizeOp::Keep::not_larger ? std::min(common, scale) : std::max(common, scale);
    }
    if (op.keep != ResizeOp::Keep::stretch) {
      for (int64_t axis : axes) {
        const int at = static_cast<int>(axis);
        const double length = std::floor(common * static_cast<double>(x[at]) + 0.5);
        SPARKLE_TRY(size, c.size(static_cast<WideInt>(std::min(length, 1e30)), "its output"));
        y[at] = size;
        op.params.scales[static_cast<size_t>(axis)] = common;
      }
      op.keep = ResizeOp::Keep::stretch;
    }
  } else if (filled(scales_at) || !op.given_scales.empty()) {
    std::vector<double> scales = op.given_scales;
    if (filled(scales_at)) {
      SPARKLE_TRY(list, c.numbers(scales_at, "scales"));
      scales = list;
    }
    if (scales.size() != count) return wrong_count("scales", scales.size());
    op.params.scales.assign(static_cast<size_t>(rank), 1);
    for (size_t i = 0; i < count; ++i) {
      const int axis = static_cast<int>(axes[static_cast<int>(i)]);
      if (!(scales[i] > 0) || !(scales[i] * static_cast<double>(x[axis]) < 1e12))
        return c.fail(Reason::bad_model, "a scale of " + std::to_string(scales[i]) + " is out of range");
      op.params.scales[static_cast<size_t>(axis)] = scales[i];
      SPARKLE_TRY(size, scaled(c, scales[i], roi_part(axis), x[axis]));
      y[axis] = size;
    }
  } else if (!op.params.scales.empty()) {  // resolved before
    const GraphTensor& out = c.graph().tensor(c.op().outputs[0]);
    if (op.params.scales.size() != static_cast<size_t>(rank)) return wrong_count("scales", op.params.scales.size());
    if (out.known && out.shape.size() == rank) {
      y = out.shape;
    } else {
      for (int i = 0; i < rank; ++i) {
        SPARKLE_TRY(size, scaled(c, op.params.scales[static_cast<size_t>(i)], roi_part(i), x[i]));
        y[i] = size;
      }
    }
  } else {
    return c.fail(Reason::bad_model, "it has neither scales nor sizes");
  }
  for (int i = 0; i < rank; ++i)
    if (x[i] == 0 && y[i] != 0) return c.fail(Reason::bad_shape, c.describe(0) + " is empty and cannot be resized");
  op.axes = {};
  op.given_scales.clear();
  c.keep_inputs(1);
  return c.set(0, c.type(0), y);
}

}  // namespace sparkle
