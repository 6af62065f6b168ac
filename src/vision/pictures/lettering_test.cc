// Captions: the font has what captions say, ink lies where it should, and the comparison carries its words above each side.
#include "vision/pictures/lettering.h"

#include <gtest/gtest.h>

#include <set>

#include "vision/pictures/comparison_picture.h"

namespace sparkle {
namespace {

int ink_in(const Image& image, int x, int y, int width, int height) {
  int count = 0;
  for (int row = y; row < y + height; ++row)
    for (int column = x; column < x + width; ++column) count += *image.at(column, row) < 100;
  return count;
}

TEST(Lettering, HasWhatCaptionsSay) {
  for (const char letter :
       std::string("network 480x270 to 960x540, 0.123 s, 98.7 GFLOP/s, 65 % of peak: +1.5-2 (dB)=ABCDEFGHIJKLM"
                   "NOPQRSTUVWXYZ"))
    EXPECT_TRUE(has_letter(letter)) << letter;
  EXPECT_FALSE(has_letter('~'));
}

TEST(Lettering, LettersDifferAndScale) {
  std::set<std::vector<float>> seen;
  const std::string all = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:/%-+=()~";
  for (const char letter : all) {
    Image image = Image::filled(kLetterWidth, kLineHeight, 1, 255);
    draw_text(image, 0, 0, 1, std::string(1, letter));
    EXPECT_GT(ink_in(image, 0, 0, kLetterWidth, kLineHeight), 0) << letter;
    EXPECT_EQ(ink_in(image, kLetterWidth - 1, 0, 1, kLineHeight), 0) << letter;  // the space between two
    EXPECT_TRUE(seen.insert(image.pixels).second) << letter;
  }
  Image small = Image::filled(60, 20, 1, 255), large = Image::filled(60, 20, 1, 255);
  draw_text(small, 0, 0, 1, "8x");
  draw_text(large, 0, 0, 2, "8x");
  EXPECT_EQ(ink_in(large, 0, 0, 60, 20), 4 * ink_in(small, 0, 0, 60, 20));
}

TEST(Lettering, StaysInsideThePicture) {
  Image image = Image::filled(10, 5, 3, 255);
  draw_text(image, -3, -3, 2, "WIDE TEXT");
  EXPECT_GT(ink_in(image, 0, 0, 10, 5), 0);
}

TEST(Lettering, Wraps) {
  EXPECT_EQ(wrap("one two three", 7), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(wrap("  much-too-long  x", 4), (std::vector<std::string>{"much-too-long", "x"}));
  EXPECT_TRUE(wrap("", 5).empty());
}

TEST(ComparisonPicture, CarriesItsCaptions) {
  for (const int width : {60, 640, 2000}) {
    const Image plain = Image::filled(width, 120, 3, 200), better = Image::filled(width, 120, 3, 200);
    const Image with = comparison_picture(plain, better, {"bicubic", "network, 0.123 s, 98.7 GFLOP/s, 65 % of peak"});
    const Image without = comparison_picture(plain, better, {"", ""});
    const int head = with.height - without.height;
    ASSERT_GT(head, 0);
    const int half = with.width / 2;
    EXPECT_GT(ink_in(with, 0, 0, half, head), 20) << width;
    EXPECT_GT(ink_in(with, half, 0, half, head), 60) << width;
    EXPECT_EQ(ink_in(without, 0, 0, without.width, without.height), 0);
    // Below the words nothing moved.
    EXPECT_EQ(ink_in(with, 0, head + 8, with.width, with.height - head - 8), 0);
  }
}

}  // namespace
}  // namespace sparkle
