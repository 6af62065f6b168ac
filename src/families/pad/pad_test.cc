// Where padding looks in x, index by index.
#include "families/pad/pad.h"

#include <gtest/gtest.h>

#include "families/values/element.h"

namespace sparkle {
namespace {

std::vector<int64_t> sources(PadMode mode, int64_t begin, int64_t end, int64_t size) {
  std::vector<int64_t> all;
  for (int64_t out = 0; out < size + begin + end; ++out) all.push_back(pad_source(mode, out, begin, end, size));
  return all;
}
using List = std::vector<int64_t>;

TEST(Pad, ModesShowTheRightElements) {
  EXPECT_EQ(sources(PadMode::constant, 2, 1, 3), (List{-1, -1, 0, 1, 2, -1}));
  EXPECT_EQ(sources(PadMode::edge, 2, 1, 3), (List{0, 0, 0, 1, 2, 2}));
  EXPECT_EQ(sources(PadMode::reflect, 2, 1, 3), (List{2, 1, 0, 1, 2, 1}));
  EXPECT_EQ(sources(PadMode::wrap, 2, 1, 3), (List{1, 2, 0, 1, 2, 0}));
}

TEST(Pad, ReflectGoesBackAndForth) {
  EXPECT_EQ(sources(PadMode::reflect, 5, 0, 3), (List{1, 0, 1, 2, 1, 0, 1, 2}));
  EXPECT_EQ(sources(PadMode::reflect, 2, 2, 1), (List{0, 0, 0, 0, 0}));
}

TEST(Pad, NegativePadsCutOffFirst) {
  EXPECT_EQ(sources(PadMode::constant, -1, 2, 4), (List{1, 2, 3, -1, -1}));
  EXPECT_EQ(sources(PadMode::wrap, -1, 2, 4), (List{1, 2, 3, 1, 2}));
  EXPECT_EQ(sources(PadMode::edge, -2, -2, 5), (List{2}));
}

TEST(Element, RoundsAndSaturates) {
  const auto through = [](DType type, double value) {
    std::byte bytes[8]{};
    store_element(type, value, bytes);
    return load_element(type, bytes);
  };
  EXPECT_EQ(through(DType::i8, 200), 127);
  EXPECT_EQ(through(DType::u8, -3), 0);
  EXPECT_EQ(through(DType::i32, 2.5), 2);
  EXPECT_EQ(through(DType::f16, 1.0 / 3), 0.333251953125);
  EXPECT_EQ(through(DType::f16, 65519), 65504);
  EXPECT_EQ(through(DType::f16, 0x1p-24), 0x1p-24);
  EXPECT_EQ(through(DType::f16, 1023.9 * 0x1p-24), 0x1p-14);
  EXPECT_EQ(through(DType::bf16, 1.00390625), 1);
  EXPECT_EQ(through(DType::bf16, -2.5), -2.5);
}

}  // namespace
}  // namespace sparkle
