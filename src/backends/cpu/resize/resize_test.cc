// Resizes of random shapes: nearest byte for byte, linear and cubic within the error of a sum of that many products.
#include <cmath>

#include "backends/cpu/copy/moves_testing.h"
#include "families/family.h"
#include "families/resize/resize.h"

namespace sparkle::cpu::testing {
namespace {

// x is normal: |x| < 6 in practice, and the weights of one output sum to less than 1.5 in size per axis (cubic).
void close_floats(std::span<const std::byte> expected, std::span<const std::byte> actual, double bound) {
  ASSERT_EQ(expected.size(), actual.size());
  for (size_t i = 0; i + 4 <= expected.size(); i += 4) {
    float a, b;
    std::memcpy(&a, actual.data() + i, 4);
    std::memcpy(&b, expected.data() + i, 4);
    if (std::isnan(b)) {
      ASSERT_EQ(std::memcmp(actual.data() + i, expected.data() + i, 4), 0) << "poison overwritten at float " << i / 4;
    } else {
      ASSERT_LE(std::abs(a - b), bound) << "float " << i / 4 << ": " << a << " instead of " << b;
    }
  }
}

TEST(Resize, RandomShapes) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  const int rounds = cases_on("sve", 600);  // where SVE is emulated, all units get fewer
  for (int round = 0; round < rounds && !HasFailure(); ++round) {
    const int rank = static_cast<int>(pick(random, 0, 5));
    ResizeParams params;
    params.mode = static_cast<ResizeMode>(pick(random, 0, 2));
    params.coordinates = static_cast<ResizeCoordinates>(pick(random, 0, 5));
    params.nearest = static_cast<ResizeNearest>(pick(random, 0, 3));
    params.exclude_outside = pick(random, 0, 1);
    params.extrapolation = 7;
    Dims shape, resized;
    int axes = 0;
    for (int i = 0; i < rank; ++i) {
      shape.push_back(pick(random, 1, rank <= 2 ? 100 : i == 1 ? 40 : 9));
      const bool changes = axes < 3 && pick(random, 0, 1);
      axes += changes;
      const int64_t kind = pick(random, 0, 2);
      const double scale = !changes    ? 1
                           : kind == 0 ? static_cast<double>(pick(random, 1, 4))
                                       : std::uniform_real_distribution<>(0.4, 3.0)(random);
      resized.push_back(std::max<int64_t>(1, static_cast<int64_t>(scale * static_cast<double>(shape[i]))));
      params.scales.push_back(kind == 1 ? static_cast<double>(resized[i]) / static_cast<double>(shape[i]) : scale);
      if (params.coordinates == ResizeCoordinates::tf_crop) {
        params.roi_begin.push_back(changes ? std::uniform_real_distribution<>(-0.2, 0.5)(random) : 0);
        params.roi_end.push_back(changes ? std::uniform_real_distribution<>(0.5, 1.3)(random) : 1);
      }
    }
    const DType type = params.mode == ResizeMode::nearest ? random_type(random) : DType::f32;
    const bool gaps = pick(random, 0, 1), last = pick(random, 0, 1);
    Memory x(type, shape, last ? channels_last(shape) : random_layout(random, shape, gaps, true));
    if (type == DType::f32) {
      x.fill_floats(random);
    } else {
      x.fill(random);
    }
    const TensorDesc y{type, resized, last ? channels_last(resized) : random_layout(random, resized, gaps, false)};
    SCOPED_TRACE(describe(x.desc()) + " -> " + describe(y) + " " + to_text(params));
    const double taps = params.mode == ResizeMode::linear ? 2 : 4;
    // Every axis rounds its weights and adds `taps` products.
    const double bound = 6 * std::pow(1.5, axes) * (2 * taps * std::max(1, axes) + 2) * std::ldexp(1, -24);
    if (params.mode == ResizeMode::nearest) {
      compare(make_resize, resize_info(), params, "lines", {&x}, y, same_bytes);
    } else {
      compare(make_resize, resize_info(), params, "lines", {&x}, y,
              [&](std::span<const std::byte> e, std::span<const std::byte> a) { close_floats(e, a, bound); });
    }
  }
}

// Nearest by whole scales: lines of less than a vector, of some and of a part more; runs of channels; more times than tables
// do.
TEST(Resize, WholeScales) {
  Random random(5);
  for (DType type : {DType::f32, DType::u8, DType::f16, DType::i64})
    for (int64_t width : {1, 3, 8, 16, 29, 70})
      for (const auto& [down, along] : {std::pair<int64_t, int64_t>{2, 2}, {3, 3}, {4, 4}, {1, 2}, {3, 1}, {2, 5}})
        for (bool last : {false, true}) {
          const Dims shape{2, width == 29 ? 20 : 3, 4, width};
          Dims resized = shape;
          resized[2] *= down, resized[3] *= along;
          Memory x(type, shape, last ? channels_last(shape) : row_major(shape));
          x.fill(random);
          ResizeParams params;
          params.coordinates = ResizeCoordinates::asymmetric, params.nearest = ResizeNearest::floor;
          params.scales = {1, 1, static_cast<double>(down), static_cast<double>(along)};
          const TensorDesc y{type, resized, last ? channels_last(resized) : row_major(resized)};
          SCOPED_TRACE(describe(x.desc()) + " -> " + describe(y));
          compare(make_resize, resize_info(), params, "lines", {&x}, y, same_bytes);
          if (HasFailure()) return;
        }
}

TEST(Resize, LongRuns) {
  Random random(3);
  for (int64_t channels : {64, 1500, 5000})
    for (ResizeMode mode : {ResizeMode::linear, ResizeMode::cubic}) {
      const Dims shape{1, channels, 5, 6}, resized{1, channels, 10, 12};
      Memory x(DType::f32, shape, channels_last(shape));
      x.fill_floats(random);
      ResizeParams params;
      params.mode = mode;
      params.scales = {1, 1, 2, 2};
      compare(make_resize, resize_info(), params, "lines", {&x}, {DType::f32, resized, channels_last(resized)},
              [&](std::span<const std::byte> e, std::span<const std::byte> a) { close_floats(e, a, 2e-5); });
    }
}

// One axis shrinks or grows by a filter of any length.
TEST(Resize, Filters) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  for (int round = 0; round < 200 && !HasFailure(); ++round) {
    Dims shape;
    for (int64_t rank = pick(random, 1, 4); shape.size() < rank;) shape.push_back(pick(random, 1, 12));
    const int axis = static_cast<int>(pick(random, 0, shape.size() - 1));
    shape[axis] = pick(random, 1, 70);
    ResizeParams params;
    params.mode = pick(random, 0, 1) ? ResizeMode::linear : ResizeMode::cubic;
    params.coordinates = static_cast<ResizeCoordinates>(pick(random, 0, 4));
    params.exclude_outside = pick(random, 0, 1);
    params.antialias = true;
    Dims resized = shape;
    resized[axis] = pick(random, 1, shape[axis] + 5);
    for (int i = 0; i < shape.size(); ++i)
      params.scales.push_back(static_cast<double>(resized[i]) / static_cast<double>(shape[i]));
    Memory x(DType::f32, shape, row_major(shape));
    x.fill_floats(random);
    SCOPED_TRACE(describe(x.desc()) + " -> " + resized.to_string() + " " + to_text(params));
    // Weights add up to less than 1.5 in size; each of them and each sum is rounded.
    const double taps = 4 * std::max(1.0, 1 / params.scales[static_cast<size_t>(axis)]) + 4;
    const double bound = 6 * 1.5 * (taps + 2) * std::ldexp(1, -24);
    compare(make_resize, resize_info(), params, "filter", {&x}, {DType::f32, resized, row_major(resized)},
            [&](std::span<const std::byte> e, std::span<const std::byte> a) { close_floats(e, a, bound); });
  }
}

}  // namespace
}  // namespace sparkle::cpu::testing
