// Moves cut into chunks: the chunks' places are those of the elements, and nothing is merged or widened that must stay apart.
#include "families/loops/chunk_move.h"

#include <gtest/gtest.h>

#include <random>

#include "families/loops/walk.h"

namespace sparkle {
namespace {

// Copies byte by byte along the axes of the move.
std::vector<int> moved(const ChunkMove& move, int64_t x0, int64_t y0, const std::vector<int>& x, size_t bytes) {
  std::vector<int> y(bytes, -1);
  Dims shape;
  for (const ChunkAxis& a : move.axes) shape.push_back(a.size);
  for_each_index(shape, [&](const Dims& at) {
    int64_t from = x0, to = y0;
    for (int i = 0; i < at.size(); ++i) {
      from += at[i] * move.axes[static_cast<size_t>(i)].x * move.bytes;
      to += at[i] * move.axes[static_cast<size_t>(i)].y * move.bytes;
    }
    EXPECT_EQ(from % move.bytes, 0);
    EXPECT_EQ(to % move.bytes, 0);
    for (int64_t b = 0; b < move.bytes; ++b) y[static_cast<size_t>(to + b)] = x[static_cast<size_t>(from + b)];
  });
  return y;
}

TEST(ChunkMove, MovesWhatACopyMoves) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto pick = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); };
  int widened = 0;
  for (int round = 0; round < 500 && !HasFailure(); ++round) {
    const DType type = pick(0, 1) ? DType::f32 : DType::u8;
    const int64_t element = size_of(type);
    Dims shape;
    for (int64_t i = pick(0, 5); i > 0; --i) shape.push_back(pick(0, 1) ? pick(1, 5) : 4 * pick(1, 3));
    const auto layout = [&] {
      Dims order = row_major(shape).order, larger = shape;
      if (pick(0, 1)) std::shuffle(order.begin(), order.end(), random);
      for (int i = 0; i < shape.size(); ++i)
        if (pick(0, 9) == 0) larger[i] += pick(1, 4);
      Layout l = dense(larger, order);
      l.offset = pick(0, 1) ? 0 : pick(0, 5);
      return l;
    };
    const TensorDesc x{type, shape, layout()}, y{type, shape, layout()};
    const ChunkMove move = chunk_move(x, y);
    widened += move.bytes > element;
    EXPECT_EQ(move.count() * move.bytes, y.bytes());
    EXPECT_TRUE(move.fits_31_bits());
    std::vector<int> from(static_cast<size_t>(extent(shape, x.layout) * element));
    for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<int>(i);
    const auto bytes = static_cast<size_t>(extent(shape, y.layout) * element);
    std::vector<int> wanted(bytes, -1);
    for_each_index(shape, [&](const Dims& at) {
      const auto place = [&](const Layout& l) {
        int64_t p = l.offset;
        for (int i = 0; i < at.size(); ++i) p += at[i] * l.strides[i];
        return static_cast<size_t>(p * element);
      };
      for (size_t b = 0; b < static_cast<size_t>(element); ++b) wanted[place(y.layout) + b] = from[place(x.layout) + b];
    });
    EXPECT_EQ(moved(move, x.layout.offset * element, y.layout.offset * element, from, bytes), wanted);
  }
  EXPECT_GT(widened, 50);
}

TEST(ChunkMove, ChannelsLastBecomeVectorsAndOneLine) {
  const Dims shape{2, 8, 5, 7};
  const TensorDesc x{DType::f32, shape, channels_last(shape)};
  const ChunkMove move = chunk_move(x, x);
  EXPECT_EQ(move.bytes, 16);
  ASSERT_EQ(move.axes.size(), 1u);
  EXPECT_EQ(move.axes[0].size, 2 * 8 * 5 * 7 / 4);
}

TEST(ChunkMove, TablesStayAlone) {
  const ChunkMove move = chunk_move({{3, 64, 80, 0, 0}, {4, 16, 16, 0, -1}, {4, 4, 4, 0, -1}}, 4, 0, 0);
  EXPECT_EQ(move.bytes, 16);
  ASSERT_EQ(move.axes.size(), 2u);
  EXPECT_EQ(move.axes[0].axis, 0);
  EXPECT_EQ(move.axes[1].size, 4);
}

TEST(ChunkMove, FindsTranspositions) {
  const Dims shape{1, 64, 14, 14};
  const ChunkMove move = chunk_move({DType::f32, shape, row_major(shape)}, {DType::f32, shape, channels_last(shape)});
  const Transposition t = transposition(move);
  ASSERT_TRUE(t.found());
  EXPECT_EQ(move.axes[static_cast<size_t>(t.a)].size, 14 * 14);
  EXPECT_EQ(move.axes[static_cast<size_t>(t.b)].size, 64);
  EXPECT_FALSE(transposition(chunk_move({DType::f32, shape, row_major(shape)}, {DType::f32, shape, row_major(shape)})).found());
}

TEST(ChunkMove, BackwardsAxesBeginBelowTheFirstElement) {
  const ChunkMove move = chunk_move({{5, -4, 4, 0, -1}}, 4, 16, 0);
  EXPECT_EQ(move.bytes, 4);
  EXPECT_EQ(move.lowest_x(), -4);
  EXPECT_EQ(move.lowest_y(), 0);
}

TEST(ChunkMove, FarMovesAreKnown) {
  EXPECT_FALSE(chunk_move({{3, int64_t{1} << 40, 4, 0, -1}}, 4, 0, 0).fits_31_bits());
  EXPECT_FALSE(chunk_move({{INT64_MAX / 2, INT64_MAX / 2, 8, 0, -1}}, 4, 0, 0).fits_31_bits());
}

}  // namespace
}  // namespace sparkle
