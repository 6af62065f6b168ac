// The Vulkan sample kernel against the family's reference: modes, paddings, alignment, spatial axes, random layouts; ties,
// positions far outside and what is no number.
#include <cmath>
#include <limits>

#include "backends/vulkan/kernels/random_stages_testing.h"
#include "families/sample/sample.h"

namespace sparkle::vulkan {
namespace {

// Mostly around x, some of them ties, elements' centres, edges, far away or no numbers.
double coordinate(RandomStage& s, int64_t size) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const int64_t kind = s.random.between(0, 19);
  if (kind == 0) {
    const double odd[] = {NAN, kInfinity, -kInfinity, 1e30, -1e30, 60000, -7777, 1e8, -3.3e7, 0};
    return odd[s.random.between(0, 9)];
  }
  // Half and whole elements, from before the first to behind the last.
  if (kind < 8)
    return static_cast<double>(s.random.between(-3 * size, 5 * size)) / static_cast<double>(std::max<int64_t>(1, size)) - 1;
  return kind < 11 ? s.random.normal() * 8 : s.random.normal();
}

void check(int cases, uint64_t first, DType real) {
  SPARKLE_NEEDS_VULKAN(backend);
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(cases) && !::testing::Test::HasFailure(); ++seed) {
    RandomStage s(seed, real);
    SampleParams p;
    p.mode = static_cast<SampleMode>(s.random.between(0, 2));
    p.padding = static_cast<SamplePadding>(s.random.between(0, 2));
    p.align_corners = s.random.chance(50);
    const int spatial = static_cast<int>(s.random.between(1, 3));
    Dims x{s.random.between(1, 3), s.random.between(1, 11)}, y = x, grid{x[0]};
    for (int i = 0; i < spatial; ++i) {
      x.push_back(s.random.between(1, 7));
      y.push_back(s.random.chance(3) ? 0 : s.random.between(1, 9));
      grid.push_back(y[2 + i]);
    }
    grid.push_back(spatial);
    const bool last = s.random.chance(50);
    s.input(last ? TensorDesc{real, x, channels_last(x)} : s.turned(s.any(x, 10)));
    s.input(s.turned(s.any(grid, 10)), [&] { return coordinate(s, x[2]); });
    s.output(s.turned({real, y, last ? channels_last(y) : s.random.layout(y)}));
    s.stage.params = p;
    // Weights of up to 1.3 per axis, rounded a few times each, and up to 64 products summed one after the other.
    const double tolerance = p.mode == SampleMode::nearest ? 0 : 2.4e-7 * (p.mode == SampleMode::linear ? 10 : 40);
    EXPECT_TRUE(check_stage(*backend, s, "positions", tolerance, 0, "seed " + std::to_string(seed)));
  }
}

TEST(VulkanSample, RandomStages) { check(400, 1, DType::f32); }
TEST(VulkanSample, Fp16) {
  SPARKLE_NEEDS_FP16();
  check(200, 5001, DType::f16);
}

// More than a row of workgroups, and more elements than a workgroup has threads along each axis.
TEST(VulkanSample, Large) {
  SPARKLE_NEEDS_VULKAN(backend);
  for (const bool last : {false, true}) {
    RandomStage s(last ? 8 : 9);
    const Dims x{1, 3, 70, 90}, y{1, 3, 1500, 1500}, grid{1, 1500, 1500, 2};
    s.input({DType::f32, x, last ? channels_last(x) : row_major(x)});
    s.input({DType::f32, grid, row_major(grid)}, [&] { return s.random.normal(); });
    s.output({DType::f32, y, last ? channels_last(y) : row_major(y)});
    s.stage.params = SampleParams{SampleMode::nearest, SamplePadding::reflection, false};
    EXPECT_TRUE(check_stage(*backend, s, "positions", 0, 0, last ? "channels last" : "planes"));
  }
}

}  // namespace
}  // namespace sparkle::vulkan
