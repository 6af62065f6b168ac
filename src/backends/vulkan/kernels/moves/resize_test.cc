// The Vulkan resize kernels against the family's reference: every mode and coordinate rule, antialiasing, regions, random
// layouts.
#include "backends/vulkan/kernels/random_stages_testing.h"
#include "families/resize/resize_taps.h"

namespace sparkle::vulkan {
namespace {

void check(const std::string& variant, bool nearest, int cases, uint64_t first, DType real = DType::f32) {
  SPARKLE_NEEDS_VULKAN(backend);
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(cases) && !::testing::Test::HasFailure(); ++seed) {
    RandomStage s(seed, real);
    ResizeParams p;
    p.mode = nearest ? ResizeMode::nearest : s.random.chance(50) ? ResizeMode::linear : ResizeMode::cubic;
    p.coordinates = static_cast<ResizeCoordinates>(s.random.between(0, 5));
    p.nearest = static_cast<ResizeNearest>(s.random.between(0, 3));
    p.exclude_outside = s.random.chance(30);
    p.antialias = !nearest && s.random.chance(40);
    p.extrapolation = 3;
    const int rank = static_cast<int>(s.random.between(1, 5));
    Dims x = s.random.shape(rank, 9), y = x;
    if (rank > 1 && s.random.chance(50)) x[1] = y[1] = 4 * s.random.between(1, 3);
    int resized = 0;
    for (int i = 0; i < rank; ++i) {
      const bool changes = i != 1 && resized < 3 && s.random.chance(60);
      resized += changes;
      const double scale = !changes ? 1 : s.random.chance(50) ? 2 : static_cast<double>(s.random.between(2, 30)) / 10;
      y[i] = std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(x[i]) * scale));
      p.scales.push_back(changes ? scale : 1);
      p.roi_begin.push_back(p.coordinates == ResizeCoordinates::tf_crop && changes ? 0.2 : 0);
      p.roi_end.push_back(p.coordinates == ResizeCoordinates::tf_crop && changes ? 1.1 : 1);
    }
    const DType type = nearest && s.random.chance(30) ? DType::i64 : real;
    const bool last = s.random.chance(50);
    s.input({type, x, last ? channels_last(x) : s.random.layout(x, 10)},
            [&] { return type == real ? s.random.normal() : static_cast<double>(s.random.between(-50, 50)); });
    s.output({type, y, last ? channels_last(y) : s.random.layout(y)});
    s.stage.params = p;
    int64_t taps = 1;
    for (int i = 0; i < rank; ++i) taps *= resize_axis(p, i, x[i], y[i]).count;
    // Weights of up to 1.3 by rounded factors, summed one after the other.
    const double tolerance = taps == 1 ? 0 : 2.4e-7 * (6 + std::sqrt(static_cast<double>(taps)));
    EXPECT_TRUE(check_stage(*backend, s, variant, tolerance, 0, "seed " + std::to_string(seed)));
  }
}

TEST(VulkanResize, Nearest) { check("units", true, 200, 1); }
TEST(VulkanResize, LinearAndCubicTaps) { check("taps", false, 200, 1001); }
TEST(VulkanResize, Fp16MoveAsTheyAre) {
  SPARKLE_NEEDS_FP16();
  check("units", true, 80, 2001, DType::f16);
}
TEST(VulkanResize, Fp16AreFilteredInFullPrecision) {
  SPARKLE_NEEDS_FP16();
  check("taps", false, 100, 3001, DType::f16);
}

}  // namespace
}  // namespace sparkle::vulkan
