// Triangles of random matrices, diagonals far outside among them, byte for byte.
#include "backends/cpu/copy/index_testing.h"
#include "families/family.h"
#include "families/triangle/triangle.h"

namespace sparkle::cpu::testing {
namespace {

TEST(Triangle, RandomShapes) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  for (int round = 0; round < 300 && !HasFailure(); ++round) {
    const Dims shape = random_shape(random, 2, 4, 15);
    TriangleParams params{pick(random, 0, 1) == 1, pick(random, -17, 17)};
    if (pick(random, 0, 9) == 0) params.diagonal = std::numeric_limits<int64_t>::max();
    if (pick(random, 0, 9) == 0) params.diagonal = std::numeric_limits<int64_t>::min();
    Memory x(random_type(random), shape, row_major(shape));
    x.fill(random);
    SCOPED_TRACE(describe(x.desc()) + " " + to_text(params));
    compare_outputs(make_triangle, triangle_info(), params, "rows", {&x}, {x.desc()});
  }
}

TEST(Triangle, KeepsTheDiagonal) {
  const HostTensor x = HostTensor::of(DType::f32, {2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6});
  HostTensor y = HostTensor::zeros(DType::f32, {2, 3});
  const TensorView input = x.view(), output = y.view();
  const auto values = [&](TriangleParams params) {
    triangle_info().reference(params, {&input, 1}, {&output, 1});
    return std::vector<float>(y.data<float>(), y.data<float>() + 6);
  };
  EXPECT_EQ(values({true, 0}), (std::vector<float>{1, 2, 3, 0, 5, 6}));
  EXPECT_EQ(values({false, 0}), (std::vector<float>{1, 0, 0, 4, 5, 0}));
  EXPECT_EQ(values({true, 2}), (std::vector<float>{0, 0, 3, 0, 0, 0}));
  EXPECT_EQ(values({false, -1}), (std::vector<float>{0, 0, 0, 4, 0, 0}));
}

}  // namespace
}  // namespace sparkle::cpu::testing
