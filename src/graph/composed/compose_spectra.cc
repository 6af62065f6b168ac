// Fourier transforms as products with constant matrices, the windows before them and the mel filters behind.
#include <cmath>
#include <numbers>

#include "graph/composed/compose.h"

namespace sparkle {
namespace {

constexpr int64_t kLargestMatrix = int64_t{1} << 24;  // elements of a transform's matrix

// cos and sin of a turn's part k n / length, exact at its quarters.
struct Turn {
  double cosine, sine;
};
Turn turn(int64_t k, int64_t n, int64_t length) {
  const int64_t part = static_cast<int64_t>((static_cast<__int128_t>(k) * n) % length);
  if (part * 4 % length == 0) {
    constexpr Turn kQuarters[] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
    return kQuarters[part * 4 / length];
  }
  const double angle = 2 * std::numbers::pi * static_cast<double>(part) / static_cast<double>(length);
  return {std::cos(angle), std::sin(angle)};
}

// [given * in, bins * out]: what the transform makes of `given` numbers of `in` parts (1: real); those beyond `length` count
// for nothing.
std::vector<double> matrix_of(const DftOp& op, int64_t given, int64_t in, int64_t length, int64_t bins, int64_t out) {
  std::vector<double> m(static_cast<size_t>(given * in * bins * out), 0);
  const int64_t half = length / 2 + 1;
  const bool halved = op.inverse && op.one_sided;
  for (int64_t n = 0; n < std::min(given, halved ? half : length); ++n)
    for (int64_t k = 0; k < bins; ++k) {
      Turn w = turn(k, n, length);
      if (!op.inverse) w.sine = -w.sine;
      double scale = op.inverse ? 1 / static_cast<double>(length) : 1;
      // The half that is not given is the conjugate of this one.
      const bool single = n == 0 || 2 * n == length;
      if (halved && !single) scale *= 2;
      const auto set = [&](int64_t part_in, int64_t part_out, double value) {
        if (part_in < in && part_out < out)
          m[static_cast<size_t>(((n * in + part_in) * bins + k) * out + part_out)] = scale * value;
      };
      set(0, 0, w.cosine), set(0, 1, w.sine);
      set(1, 0, halved && single ? 0 : -w.sine), set(1, 1, w.cosine);
    }
  return m;
}

}  // namespace

Status compose(Composition& c, const DftOp& op) {
  const Dims x = c.shape(0);
  const int rank = x.size();
  if (rank < 2 || x.back() < 1 || x.back() > 2) return c.wrong_shape(0, "two axes at least, the last of size 1 or 2");
  int64_t named = op.axis;
  if (c.given(2)) {
    SPARKLE_TRY(value, c.integer(2, "axis"));
    named = value;
  }
  SPARKLE_TRY(axis, c.axis(named, rank));
  if (axis == rank - 1) return c.fail(Reason::bad_model, "its axis is the one of complex numbers");
  const int64_t given = x[axis], in = x.back();
  int64_t length = op.inverse && op.one_sided ? 2 * (given - 1) : given;
  if (c.given(1)) {
    SPARKLE_TRY(value, c.integer(1, "length"));
    length = value;
  }
  if (length < 1) return c.fail(Reason::bad_shape, "its transform would have the length " + std::to_string(length));
  const int64_t bins = op.one_sided && !op.inverse ? length / 2 + 1 : length, out = op.one_sided && op.inverse ? 1 : 2;
  if (length > kLargestMatrix || given > kLargestMatrix || given * in > kLargestMatrix / (bins * out))
    return c.fail(Reason::operator_not_served, "its transform of " + std::to_string(given) + " numbers into " +
                                                   std::to_string(bins) +
                                                   " is a product with a matrix, which would be larger than 2^24 elements");
  Dims to_end, back = Dims::filled(rank, 0), rest;
  for (int i = 0; i < rank - 1; ++i)
    if (i != axis) to_end.push_back(i), rest.push_back(x[i]);
  to_end.push_back(axis), to_end.push_back(rank - 1);
  for (int i = 0; i < rank; ++i) back[static_cast<int>(to_end[i])] = i;
  const TensorId rows = c.reshape(c.transpose(c.in(0), to_end), {rest.product(), given * in});
  const TensorId m = c.constant(c.type(0), {given * in, bins * out}, matrix_of(op, given, in, length, bins, out));
  rest.push_back(bins), rest.push_back(out);
  c.give(0, c.transpose(c.reshape(c.product(rows, m), rest), back));
  return ok();
}

std::optional<std::string> frames_beyond_limits(int64_t length, int64_t parts, bool one_sided) {
  const int64_t bins = one_sided ? length / 2 + 1 : length;
  if (length <= kLargestMatrix && length * parts <= kLargestMatrix / (2 * bins)) return std::nullopt;
  return "its transform of " + std::to_string(length) +
         " numbers is a product with a matrix, which would be larger than 2^24 elements";
}

// A convolution whose filters are the rows of the transform's matrix times the window.
Status compose(Composition& c, const StftOp& op) {
  Dims x = c.shape(0);
  TensorId signal = c.in(0);
  if (x.size() == 2) {  // torch exports real signals without the axis of their parts
    x.push_back(1);
    signal = c.reshape(signal, x);
  } else {
    SPARKLE_CHECK(c.expect_rank(0, 3));
  }
  if (x[2] < 1 || x[2] > 2) return c.wrong_shape(0, "a last axis of size 1 or 2");
  SPARKLE_TRY(step, c.integer(1, "step"));
  int64_t length = c.given(2) ? c.shape(2).product() : x[1];
  if (c.given(3)) {
    SPARKLE_TRY(value, c.integer(3, "frame length"));
    length = value;
  }
  if (step < 1 || length < 1 || length > x[1])
    return c.fail(Reason::bad_shape, "frames of " + std::to_string(length) + " at steps of " + std::to_string(step) +
                                         " do not fit a signal of " + std::to_string(x[1]));
  if (c.given(2)) SPARKLE_CHECK(c.expect_shape(2, {length}));
  const int64_t bins = op.one_sided ? length / 2 + 1 : length, parts = x[2];
  if (const auto beyond = frames_beyond_limits(length, parts, op.one_sided))
    return c.fail(Reason::operator_not_served, *beyond);
  std::vector<double> filters(static_cast<size_t>(2 * bins * parts * length));
  for (int64_t k = 0; k < bins; ++k)
    for (int64_t n = 0; n < length; ++n) {
      const Turn w = turn(k, n, length);
      const auto set = [&](int64_t out, int64_t in, double value) {
        if (in < parts) filters[static_cast<size_t>(((out * bins + k) * parts + in) * length + n)] = value;
      };
      set(0, 0, w.cosine), set(1, 0, -w.sine);
      set(0, 1, w.sine), set(1, 1, w.cosine);
    }
  TensorId f = c.constant(c.type(0), {2 * bins, parts, length}, filters);
  if (c.given(2)) f = c.pointwise(PointwiseOp::mul, {f, c.reshape(c.in(2), {1, 1, length})});
  ConvOp conv;
  conv.strides = {step};
  const int64_t frames = (x[1] - length) / step + 1;
  const TensorId y = c.add(conv, {c.transpose(signal, {0, 2, 1}), f});
  c.give(0, c.transpose(c.reshape(y, {x[0], 2, bins, frames}), {0, 3, 2, 1}));
  return ok();
}

Status compose(Composition& c, const WindowOp& op) {
  constexpr int64_t kMost = int64_t{1} << 24;
  SPARKLE_TRY(size, c.integer(0, "size"));
  if (size < 0 || size > kMost) return c.fail(Reason::bad_model, "its size is " + std::to_string(size));
  std::vector<double> values(static_cast<size_t>(size));
  const int64_t length = op.periodic ? size : size - 1;
  for (int64_t n = 0; n < size; ++n)
    values[static_cast<size_t>(n)] =
        length < 1 ? 1 : op.a0 - op.a1 * turn(1, n, length).cosine + op.a2 * turn(2, n, length).cosine;
  c.give(0, c.constant(op.dtype, {size}, values));
  return ok();
}

// Triangles between neighbouring centres, which lie evenly on the mel scale and are rounded down to bins.
Status compose(Composition& c, const MelWeightsOp& op) {
  constexpr int64_t kMost = int64_t{1} << 16;
  SPARKLE_TRY(bins, c.integer(0, "number of bins"));
  SPARKLE_TRY(length, c.integer(1, "length of the transform"));
  SPARKLE_TRY(rate, c.integer(2, "sample rate"));
  double edges[2];
  for (size_t i = 0; i < 2; ++i) {
    SPARKLE_TRY(edge, c.numbers(3 + i, "edge"));
    edges[i] = edge[0];
  }
  if (bins < 1 || length < 1 || rate < 1 || bins > kMost || length > kMost || edges[0] < 0 || !(edges[1] > edges[0]))
    return c.fail(Reason::bad_model, "its filters cannot be made of " + std::to_string(bins) + " bins, a transform of " +
                                         std::to_string(length) + " and a sample rate of " + std::to_string(rate));
  const auto mel = [](double hertz) { return 2595 * std::log1p(hertz / 700) / std::numbers::ln10; };
  const double low = mel(edges[0]), step = (mel(edges[1]) - low) / static_cast<double>(bins + 2);
  const int64_t rows = length / 2 + 1;
  if (rows > kLargestMatrix / bins) return c.fail(Reason::operator_not_served, "it would have more than 2^24 elements");
  std::vector<int64_t> centre;
  for (int64_t i = 0; i < bins + 2; ++i) {
    const double hertz = 700 * std::expm1((low + static_cast<double>(i) * step) / 2595 * std::numbers::ln10);
    const double bin = std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate));
    if (!(bin < static_cast<double>(rows)))
      return c.fail(Reason::bad_model, "its highest frequency lies beyond half of the sample rate");
    centre.push_back(static_cast<int64_t>(bin));
  }
  std::vector<double> values(static_cast<size_t>(rows * bins), 0);
  for (int64_t i = 0; i < bins; ++i) {
    const auto at = [&](int64_t row) -> double& { return values[static_cast<size_t>(row * bins + i)]; };
    const int64_t from = centre[static_cast<size_t>(i)], top = centre[static_cast<size_t>(i) + 1],
                  to = centre[static_cast<size_t>(i) + 2];
    if (top == from) at(top) = 1;
    for (int64_t j = from; top > from && j <= top; ++j) at(j) = static_cast<double>(j - from) / static_cast<double>(top - from);
    for (int64_t j = top; j < to; ++j) at(j) = static_cast<double>(to - j) / static_cast<double>(to - top);
  }
  c.give(0, c.constant(op.dtype, {rows, bins}, values));
  return ok();
}

}  // namespace sparkle
