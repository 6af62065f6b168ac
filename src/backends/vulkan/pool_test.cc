// The Vulkan pool kernels against the family's reference: random shapes, layouts and windows; NaN, infinities and empty
// windows.
#include "backends/vulkan/random_stages.h"

namespace sparkle::vulkan {
namespace {

void check(const std::string& variant, bool wide, int cases, uint64_t first, DType type = DType::f32) {
  SPARKLE_NEEDS_VULKAN(backend);
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(cases) && !testing::Test::HasFailure(); ++seed) {
    RandomStage s(seed, type);
    PoolParams p;
    p.kind = static_cast<PoolKind>(s.random.between(0, 2));
    p.count_pad = s.random.chance(50);
    p.p = s.random.between(1, 5);
    const int spatial = static_cast<int>(s.random.between(1, 3));
    Dims x{s.random.between(1, 3), wide ? 4 * s.random.between(1, 9) : s.random.between(1, 9)}, y = x;
    for (int i = 0; i < spatial; ++i) {
      const auto at = static_cast<size_t>(3 - spatial + i);
      p.window.filter[at] = s.random.between(1, spatial == 3 ? 3 : 6);
      p.window.stride[at] = s.random.between(1, 3);
      p.window.dilation[at] = s.random.between(1, 2);
      p.window.pad_begin[at] = s.random.between(0, 3);
      p.window.pad_end[at] = s.random.between(0, 3);
      x.push_back(s.random.between(1, spatial == 3 ? 5 : 14));
      y.push_back(s.random.between(1, 9));
    }
    const auto value = [&] {
      if (p.kind != PoolKind::max || s.random.chance(90)) return s.random.normal();
      return s.random.chance(30) ? std::nan("") : s.random.chance(50) ? -INFINITY : 1.0;
    };
    s.input(wide ? s.in_fours(x) : s.any(x, 10), value);
    s.output(wide ? s.in_fours(y) : s.any(y));
    if (!wide && p.kind == PoolKind::max && s.random.chance(60)) s.output(s.any(DType::i64, y));
    s.stage.params = p;
    EXPECT_TRUE(
        check_stage(*backend, s, variant, 1e-7 * static_cast<double>(8 + p.window.taps()), 0, "seed " + std::to_string(seed)));
  }
}

TEST(VulkanPool, NaiveServesAnyLayoutAndPositions) { check("naive", false, 200, 1); }
TEST(VulkanPool, VectorsOfChannels) { check("vectors", true, 150, 1001); }
TEST(VulkanPool, HalvesAreAddedInFullPrecision) {
  SPARKLE_NEEDS_HALVES();
  check("naive", false, 80, 2001, DType::f16);
  check("vectors", true, 80, 3001, DType::f16);
}

}  // namespace
}  // namespace sparkle::vulkan
