#include "report/png_check.h"

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

}  // namespace
}  // namespace sparkle
