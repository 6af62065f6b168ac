// The Vulkan deform kernel against the family's reference: groups, offset groups, masks, biases, windows, random layouts.
#include <cmath>

#include "backends/vulkan/kernels/random_stages_testing.h"
#include "families/deform/deform.h"

namespace sparkle::vulkan {
namespace {

void check(int cases, uint64_t first, DType real) {
  SPARKLE_NEEDS_VULKAN(backend);
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(cases) && !::testing::Test::HasFailure(); ++seed) {
    RandomStage s(seed, real);
    DeformParams p;
    for (size_t i = 0; i < 2; ++i) {
      p.filter[i] = s.random.between(1, 3), p.stride[i] = s.random.between(1, 2);
      p.dilation[i] = s.random.between(1, 2), p.pad_begin[i] = s.random.between(0, 2);
    }
    p.groups = s.random.between(1, 3), p.offset_groups = s.random.between(1, 2);
    p.bias = s.random.chance(50), p.mask = s.random.chance(50);
    const int64_t n = s.random.between(1, 2), inner = 2 * s.random.between(1, 5), c = p.groups * inner;
    const int64_t k = p.groups * s.random.between(1, s.random.chance(20) ? 70 : 9), taps = p.filter[0] * p.filter[1];
    const int64_t rows = s.random.chance(3) ? 0 : s.random.between(1, 7), columns = s.random.between(1, 7);
    const Dims x{n, c, s.random.between(1, 9), s.random.between(1, 9)}, y{n, k, rows, columns};
    const bool last = s.random.chance(50);
    s.input(last ? TensorDesc{real, x, channels_last(x)} : s.turned(s.any(x, 10)));
    s.input(s.turned(s.any({k, inner, p.filter[0], p.filter[1]})));
    s.input(s.turned(s.any({n, p.offset_groups * taps * 2, rows, columns}, 10)), [&] {
      return s.random.chance(3) ? NAN : s.random.chance(20) ? static_cast<double>(s.random.between(-3, 3)) : s.random.normal();
    });
    if (p.bias) s.input(s.turned(s.any({k})));
    if (p.mask) s.input(s.turned(s.any({n, p.offset_groups * taps, rows, columns}, 10)));
    s.output(s.turned({real, y, last ? channels_last(y) : s.random.layout(y)}));
    s.stage.params = p;
    // Products of factors rounded some times each, summed one after the other.
    const double tolerance = 2.4e-7 * (8 + std::sqrt(static_cast<double>(inner * taps)));
    EXPECT_TRUE(check_stage(*backend, s, "slabs", tolerance, 0, "seed " + std::to_string(seed)));
  }
}

TEST(VulkanDeform, RandomStages) { check(300, 1, DType::f32); }
TEST(VulkanDeform, Fp16) {
  SPARKLE_NEEDS_FP16();
  check(150, 5001, DType::f16);
}

}  // namespace
}  // namespace sparkle::vulkan
