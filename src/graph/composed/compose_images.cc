// Images from columns, grids and diagonals.
#include "graph/composed/compose.h"

namespace sparkle {

std::string image_of_too_many_axes(size_t axes) {
  return "its image has " + std::to_string(axes) + " axes; up to 3 are supported";
}

// A transposed convolution whose filters place each row of a block where it belongs.
Status compose(Composition& c, const ColumnsToImageOp& op) {
  SPARKLE_CHECK(c.expect_rank(0, 3));
  SPARKLE_TRY(image, c.integers(1, "image's shape"));
  SPARKLE_TRY(block, c.integers(2, "block's shape"));
  const auto spatial = static_cast<int>(image.size());
  constexpr int kMost = 3;
  if (spatial > kMost) return c.fail(Reason::operator_not_served, image_of_too_many_axes(image.size()));
  const auto fits = [&](const Dims& list, int count) { return list.empty() || list.size() == count; };
  if (block.size() != image.size() || !fits(op.strides, spatial) || !fits(op.dilations, spatial) || !fits(op.pads, 2 * spatial))
    return c.fail(Reason::bad_model, "its shapes, strides, dilations and pads speak of different numbers of axes");
  const Dims x = c.shape(0);
  ConvOp conv;
  conv.transposed = true;
  Dims blocks, filter{0, 1};
  int64_t taps = 1;
  for (int i = 0; i < spatial; ++i) {
    const int64_t size = image[static_cast<size_t>(i)], taken = block[static_cast<size_t>(i)];
    const int64_t stride = op.strides.empty() ? 1 : op.strides[i], dilation = op.dilations.empty() ? 1 : op.dilations[i];
    const int64_t begin = op.pads.empty() ? 0 : op.pads[i], end = op.pads.empty() ? 0 : op.pads[i + spatial];
    constexpr int64_t kLargest = 1 << 24;
    if (size < 1 || taken < 1 || stride < 1 || dilation < 1 || begin < 0 || end < 0 || size > kLargest || taken > kLargest ||
        dilation > kLargest || begin > kLargest || end > kLargest || taps > kLargest / taken)
      return c.fail(Reason::bad_model, "its sizes, strides, dilations or pads are out of range");
    const int64_t free = size + begin + end - dilation * (taken - 1) - 1;
    if (free < 0) return c.fail(Reason::bad_shape, "its block does not fit its image");
    taps *= taken;
    if (const int64_t count = free / stride + 1; x[2] < 1 || count > x[2] / blocks.product())
      return c.wrong_shape(0, "more columns: its blocks are " + std::to_string(count) + " along axis " + std::to_string(i));
    blocks.push_back(free / stride + 1), filter.push_back(taken);
    conv.kernel.push_back(taken), conv.strides.push_back(stride), conv.dilations.push_back(dilation);
    conv.pads_begin.push_back(begin), conv.pads_end.push_back(end), conv.output_padding.push_back(free % stride);
  }
  if (x[1] % taps || x[2] != blocks.product())
    return c.wrong_shape(
        0, "a multiple of " + std::to_string(taps) + " rows and " + std::to_string(blocks.product()) + " columns");
  constexpr int64_t kMostFilters = int64_t{1} << 24;
  if (x[1] > kMostFilters / taps) return c.fail(Reason::operator_not_served, "its filters would have more than 2^24 elements");
  filter[0] = x[1];
  conv.groups = x[1] / taps;
  std::vector<double> placed(static_cast<size_t>(x[1] * taps), 0);
  for (int64_t i = 0; i < x[1]; ++i) placed[static_cast<size_t>(i * taps + i % taps)] = 1;
  Dims columns{x[0], x[1]};
  for (int64_t size : blocks) columns.push_back(size);
  c.give(0, c.add(conv, {c.reshape(c.in(0), columns), c.constant(c.type(0), filter, placed)}));
  return ok();
}

// The places of all pixels, from -1 to 1, times the transposed matrices.
Status compose(Composition& c, const AffineGridOp& op) {
  SPARKLE_CHECK(c.expect_rank(0, 3));
  SPARKLE_TRY(size, c.integers(1, "size"));
  const auto axes = static_cast<int64_t>(size.size()) - 2;
  if (axes != 2 && axes != 3) return c.fail(Reason::bad_shape, "its size should have 4 or 5 entries");
  SPARKLE_CHECK(c.expect_shape(0, {size[0], axes, axes + 1}));
  Dims y{size[0]};
  int64_t pixels = 1;
  constexpr int64_t kMost = 1 << 24;
  for (size_t i = 2; i < size.size(); ++i) {
    if (size[i] < 1 || size[i] > kMost || pixels > kMost / size[i])
      return c.fail(Reason::bad_shape, "its size is out of range: 1 to 2^24 pixels are supported");
    y.push_back(size[i]), pixels *= size[i];
  }
  y.push_back(axes);
  std::vector<double> base;
  base.reserve(static_cast<size_t>(pixels * (axes + 1)));
  for (int64_t p = 0; p < pixels; ++p) {
    int64_t rest = p;
    for (auto i = static_cast<int>(axes); i >= 1; --i) {  // the innermost axis first
      const int64_t n = y[i], at = rest % n;
      rest /= n;
      const auto whole = static_cast<double>(n);
      base.push_back(op.align_corners ? (n == 1 ? 0 : 2 * static_cast<double>(at) / (whole - 1) - 1)
                                      : (2 * static_cast<double>(at) + 1) / whole - 1);
    }
    base.push_back(1);
  }
  const TensorId places = c.constant(c.type(0), {pixels, axes + 1}, base);
  c.give(0, c.reshape(c.product(places, c.transpose(c.in(0), {0, 2, 1})), y));
  return ok();
}

Status compose(Composition& c, const EyeLikeOp& op) {
  constexpr int64_t kMost = 1 << 24;
  SPARKLE_CHECK(c.expect_rank(0, 2));
  const Dims x = c.shape(0);
  if (x[1] > 0 && x[0] > kMost / x[1]) return c.fail(Reason::operator_not_served, "it would have more than 2^24 elements");
  std::vector<double> values(static_cast<size_t>(x.product()), 0);
  for (int64_t row = 0; row < x[0]; ++row)
    if (const int64_t column = row + op.diagonal; column >= 0 && column < x[1])
      values[static_cast<size_t>(row * x[1] + column)] = 1;
  c.give(0, c.constant(op.dtype.value_or(c.type(0)), x, values));
  return ok();
}

}  // namespace sparkle
