// The Vulkan pool kernels against the family's reference: random shapes, layouts and windows; NaN, infinities and empty
// windows.
#include "backends/vulkan/kernels/random_stages_testing.h"
#include "families/pool/pool.h"
#include "families/registry.h"

namespace sparkle::vulkan {
namespace {

void check(const std::string& variant, bool wide, int cases, uint64_t first, DType type = DType::f32) {
  SPARKLE_NEEDS_VULKAN(backend);
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(cases) && !::testing::Test::HasFailure(); ++seed) {
    RandomStage s(seed, type);
    PoolParams p;
    const bool bytes = type == DType::u8 || type == DType::i8;
    p.kind = bytes ? PoolKind::max : static_cast<PoolKind>(s.random.between(0, 2));
    p.count_pad = s.random.chance(50);
    p.p = s.random.between(1, type == DType::f64 ? 2 : 5);
    const int spatial = static_cast<int>(s.random.between(1, 3));
    Dims x{s.random.between(1, 3), wide ? 4 * s.random.between(1, 9) : s.random.between(1, 9)}, y = x;
    for (int i = 0; i < spatial; ++i) {
      const auto at = static_cast<size_t>(3 - spatial + i);
      p.window.filter[at] = s.random.between(1, spatial == 3 ? 3 : 6);
      if (variant == "group")
        p.window.filter[at] = s.random.between(spatial == 1 ? 64 : spatial == 2 ? 8 : 4, spatial == 1 ? 300 : 14);
      p.window.stride[at] = s.random.between(1, 3);
      p.window.dilation[at] = s.random.between(1, 2);
      p.window.pad_begin[at] = s.random.between(0, 3);
      p.window.pad_end[at] = s.random.between(0, 3);
      x.push_back(s.random.between(1, spatial == 3 ? 5 : variant == "group" ? 40 : 14));
      y.push_back(s.random.between(1, 9));
    }
    const auto value = [&] {
      if (bytes) return static_cast<double>(s.random.between(type == DType::i8 ? -128 : 0, type == DType::i8 ? 127 : 255));
      if (p.kind != PoolKind::max || s.random.chance(90)) return s.random.normal();
      return s.random.chance(30) ? std::nan("") : s.random.chance(50) ? -INFINITY : 1.0;
    };
    s.input(wide ? s.in_vec4(x) : s.any(x, 10), value);
    s.output(wide ? s.in_vec4(y) : s.any(y));
    if (!wide && variant != "group" && p.kind == PoolKind::max && s.random.chance(60)) s.output(s.any(DType::i64, y));
    s.stage.params = p;
    EXPECT_TRUE(check_stage(*backend, s, variant,
                            (type == DType::f64 ? 1e-15 : 1e-7) * static_cast<double>(8 + p.window.taps()), 0,
                            "seed " + std::to_string(seed)));
  }
}

TEST(VulkanPool, NaiveServesAnyLayoutAndPositions) { check("naive", false, 200, 1); }
TEST(VulkanPool, VectorsOfChannels) { check("vectors", true, 150, 1001); }
TEST(VulkanPool, MaximaOfBytes) {
  check("naive", false, 60, 8001, DType::u8);
  check("naive", false, 60, 9001, DType::i8);
}
TEST(VulkanPool, Doubles) {
  SPARKLE_NEEDS_DOUBLES();
  check("naive", false, 100, 10001, DType::f64);
}
TEST(VulkanPool, GroupsShareLongWindows) {
  check("group", false, 80, 4001);
  check("group", true, 80, 5001);
}
TEST(VulkanPool, Fp16AreAddedInFullPrecision) {
  SPARKLE_NEEDS_FP16();
  check("naive", false, 80, 2001, DType::f16);
  check("vectors", true, 80, 3001, DType::f16);
  check("group", false, 40, 6001, DType::f16);
  check("group", true, 40, 7001, DType::f16);
}

// The mean of a whole plane of few channels is one for workgroups; short windows, and positions of maxima, are not.
TEST(VulkanPool, GroupsAreForLongWindows) {
  SPARKLE_NEEDS_VULKAN(backend);
  const auto schedules = [&](int64_t side, bool positions) {
    Stage stage;
    PoolParams p;
    p.kind = positions ? PoolKind::max : PoolKind::average;
    p.window.filter = {1, side, side};
    stage.params = p;
    stage.inputs.push_back(dense_desc(DType::f32, {1, 64, side, side}));
    stage.outputs.push_back(dense_desc(DType::f32, {1, 64, 1, 1}));
    if (positions) stage.outputs.push_back(dense_desc(DType::i64, {1, 64, 1, 1}));
    Reason why = Reason::none;
    return info(Family::pool).schedules(stage, *variant_named(Family::pool, "group"), backend->device(), why).size();
  };
  EXPECT_EQ(schedules(56, false), 1u);
  EXPECT_EQ(schedules(7, false), 0u);
  EXPECT_EQ(schedules(56, true), 0u);
}

}  // namespace
}  // namespace sparkle::vulkan
