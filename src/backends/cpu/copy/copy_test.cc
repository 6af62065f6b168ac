// Copies between random layouts, byte for byte as the reference makes them.
#include "backends/cpu/copy/moves_testing.h"
#include "families/copy/copy.h"
#include "families/family.h"

namespace sparkle::cpu::testing {
namespace {

void check_copy(const TensorDesc& x, const TensorDesc& y, Random& random) {
  SCOPED_TRACE(describe(x) + " -> " + describe(y));
  Memory input(x.dtype, x.shape, x.layout);
  input.fill(random);
  compare(make_copy, copy_info(), CopyParams{}, "tiles", {&input}, y, same_bytes);
}

TEST(Copy, RandomLayouts) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  for (int round = 0; round < 400 && !HasFailure(); ++round) {
    const int rank = static_cast<int>(pick(random, 0, 8));
    Dims shape;
    for (int i = 0; i < rank; ++i) shape.push_back(pick(random, 1, rank <= 2 ? 200 : rank <= 4 ? 17 : 4));
    const DType type = random_type(random);
    const bool gaps = pick(random, 0, 1);
    TensorDesc x{type, shape, random_layout(random, shape, gaps, true)};
    // Some axes of x repeat.
    if (pick(random, 0, 2) == 0)
      for (int i = 0; i < rank; ++i)
        if (pick(random, 0, 2) == 0 && x.layout.strides[i] > 0) x.layout.strides[i] = 0;
    check_copy(x, {type, shape, random_layout(random, shape, gaps, false)}, random);
  }
}

TEST(Copy, ChannelsFirstAndLast) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  for (DType type : {DType::u8, DType::f16, DType::f32, DType::i64})
    for (int64_t channels : {1, 2, 3, 4, 5, 16, 31, 64, 100})
      for (int64_t width : {1, 7, 33, 64}) {
        const Dims shape{2, channels, 9, width};
        check_copy({type, shape, row_major(shape)}, {type, shape, channels_last(shape)}, random);
        check_copy({type, shape, channels_last(shape)}, {type, shape, row_major(shape)}, random);
        if (HasFailure()) return;
      }
}

// As space to depth takes planes apart.
TEST(Copy, EverySecondElement) {
  Random random(1);
  for (DType type : {DType::u8, DType::f16, DType::f32, DType::i64})
    for (int64_t width : {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 129, 208}) {
      const Dims shape{2, 5, width};
      TensorDesc x{type, shape, row_major({2, 10, 2 * width})};
      x.layout.strides[1] *= 2, x.layout.strides[2] *= 2;
      x.layout.offset = pick(random, 0, 1);
      check_copy(x, {type, shape, row_major({2, 5, width})}, random);
      if (HasFailure()) return;
    }
}

// As depth to space leaves them: pixels of a few channels, a block of them where one was; and the way back.
TEST(Copy, BlocksOfPixels) {
  Random random(1);
  for (DType type : {DType::u8, DType::f16, DType::f32, DType::i64})
    for (int64_t channels : {2, 3, 4, 5})
      for (int64_t block : {2, 3, 4})
        for (int64_t width : {1, 2, 7, 65, 700}) {
          // [channels, height, block, width, block], of channels that lie innermost behind both parts of the block.
          const Dims shape{channels, 2, block, width, block};
          const Layout planes = row_major(shape), pixels = dense(shape, {1, 3, 2, 4, 0});
          check_copy({type, shape, pixels}, {type, shape, planes}, random);
          check_copy({type, shape, planes}, {type, shape, pixels}, random);
          if (HasFailure()) return;
        }
}

TEST(Copy, LargeRow) {
  Random random(1);
  const Dims shape{3, 411, 701};
  check_copy({DType::f32, shape, row_major(shape)}, {DType::f32, shape, row_major(shape)}, random);
}

TEST(Copy, EmptyMovesNothing) {
  Random random(1);
  const Dims shape{3, 0, 5};
  check_copy({DType::f32, shape, row_major(shape)}, {DType::f32, shape, channels_last(shape)}, random);
}

TEST(Copy, UnknownUnitIsAnError) {
  const TensorDesc x = dense_desc(DType::f32, {4});
  const auto kernel = make_copy({CopyParams{}, {x}, {x}}, LoopSchedule{"tiles", "mmx", 0}, Device{}, 0);
  ASSERT_FALSE(kernel.ok());
  EXPECT_EQ(kernel.error().reason, Reason::backend_lacks_variant);
}

}  // namespace
}  // namespace sparkle::cpu::testing
