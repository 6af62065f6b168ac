#include "report/pictures/guards/png_check.h"

#include <gtest/gtest.h>

#include <string>

namespace sparkle {
namespace {

bool fits(const std::string& text) { return png_chunks_fit(std::as_bytes(std::span(text.data(), text.size()))); }

TEST(PngCheck, ChunksLieInsideTheFile) {
  using namespace std::string_literals;
  const std::string start = "\x89PNG\r\n\x1a\n"s, end = "\0\0\0\0IENDcrc!"s;
  EXPECT_TRUE(fits(start + "\0\0\0\2IDATxxcrc!"s + end));
  EXPECT_FALSE(fits(start + "\x51\0\0\2IDATxxcrc!"s + end));
  EXPECT_FALSE(fits(start + "\xff\xff\xff\xffIDAT"s));
  EXPECT_TRUE(fits(start));
  EXPECT_TRUE(fits("no PNG"));
}

// Allowed, but the decoder would copy them to where there is no memory yet.
TEST(PngCheck, EmptyPixelDataIsLeftOut) {
  using namespace std::string_literals;
  const std::string start = "\x89PNG\r\n\x1a\n"s, data = "\0\0\0\2IDATxxcrc!"s, empty = "\0\0\0\0IDATcrc!"s,
                    end = "\0\0\0\0IENDcrc!"s;
  const auto left = [](const std::string& text) {
    std::vector<std::byte> kept;
    const auto bytes = png_for_decoder(std::as_bytes(std::span(text.data(), text.size())), kept);
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  EXPECT_EQ(left(start + data + end), start + data + end);
  EXPECT_EQ(left(start + empty + data + empty + empty + end), start + data + end);
  EXPECT_EQ(left(start + data + end + empty), start + data + end + empty);
  EXPECT_EQ(left(start + empty), start);
  EXPECT_EQ(left("no PNG"), "no PNG");
}

}  // namespace
}  // namespace sparkle
