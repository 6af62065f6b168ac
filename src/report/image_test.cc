#include "report/image.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "report/jpeg_check.h"
#include "report/preprocess.h"
#include "report/resample.h"

namespace sparkle {
namespace {

Result<Image> parse(const std::string& bytes) { return read_image_bytes(std::as_bytes(std::span(bytes)), "test"); }

TEST(Image, PngRoundTrip) {
  Image image = Image::filled(7, 5, 3, 0);
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<float>(i * 2 % 256);
  const std::string path = (std::filesystem::temp_directory_path() / "sparkle_image_test.png").string();
  ASSERT_TRUE(write_png(path, image).ok());
  auto back = read_image(path);
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(back->pixels, image.pixels);
  std::ifstream in(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  for (size_t keep = 0; keep < bytes.size(); ++keep) (void)parse(bytes.substr(0, keep)).ok();  // cut short: no crash
  std::filesystem::remove(path);
}

TEST(Image, HugeHeadersAndRubbishAreRefused) {
  const auto huge = parse("P6\n60000 60000\n255\n");
  ASSERT_FALSE(huge.ok());
  EXPECT_EQ(huge.error().reason, Reason::size_overflow);
  for (const char* text : {"", "hello", "P6\n4 4\n255\n", "BM", "\x89PNG\r\n\x1a\n"}) EXPECT_FALSE(parse(text).ok()) << text;
  EXPECT_EQ(read_image("/nonexistent.png").error().reason, Reason::file_unreadable);
}

TEST(Image, JpegTablesThatAreTooLongAreRefused) {
  const std::string head("\xff\xd8\xff\xe0\x00\x04\xff\xc4", 8);                               // metadata may look like a table
  const std::string table = std::string("\xff\xc4\x01\x50\x00", 5) + std::string(16, '\x11');  // 272 codes
  const auto kept = [](const std::string& s) { return checked_jpeg(std::as_bytes(std::span(s))).size(); };
  EXPECT_EQ(kept(head + table), 0u);
  EXPECT_EQ(kept(head + "\xff\xda" + "abc" + table), 0u);
  EXPECT_EQ(kept(head + "\xff\xda" + "abc\xff\xd9" + table), head.size() + 7);  // after the end nothing is read
  EXPECT_EQ(kept("GIF" + table), table.size() + 3);
  EXPECT_FALSE(parse(head + table).ok());
}

TEST(Image, JpegScansWithoutTheirTablesAreRefused) {
  const std::string seeds = SPARKLE_SOURCE_DIR "/tests/fuzz/seeds/";
  for (const char* whole : {"rgb.jpg", "grey.jpg", "progressive.jpg"}) EXPECT_TRUE(read_image(seeds + whole).ok()) << whole;
  const auto damaged = read_image(seeds + "undefined_table.jpg");
  ASSERT_FALSE(damaged.ok());
  EXPECT_EQ(damaged.error().reason, read_image(seeds + "f32.npy").error().reason);
}

TEST(Image, SixteenBitsBecomeFractions) {
  auto image = parse(std::string("P5\n2 1\n65535\n") + std::string("\xff\xff\x01\x01", 4));
  ASSERT_TRUE(image.ok()) << image.error().message;
  EXPECT_EQ(image->channels, 1);
  EXPECT_NEAR(image->pixels[0], 255, 1e-3);
  EXPECT_NEAR(image->pixels[1], 1, 1e-3);
}

TEST(Resample, KeepsConstantsAndAverages) {
  const Image flat = Image::filled(37, 11, 3, 90);
  for (const Filter filter : {Filter::nearest, Filter::bilinear, Filter::bicubic})
    for (const int size : {1, 5, 80})
      for (const float v : resample(flat, size, size + 1, filter).pixels) ASSERT_NEAR(v, 90, 1e-3);
  // A step halved: the triangle covers four pixels with weights 1 3 3 1 over 8.
  Image step = Image::filled(8, 1, 1, 0);
  for (int x = 4; x < 8; ++x) *step.at(x, 0) = 80;
  const Image half = resample(step, 4, 1, Filter::bilinear);
  EXPECT_NEAR(half.pixels[1], 10, 1e-4);
  EXPECT_NEAR(half.pixels[2], 70, 1e-4);
}

TEST(Preprocess, PresetsMapPixels) {
  const Image white = Image::filled(300, 260, 3, 255);
  const struct {
    const char* preset;
    float value;
  } cases[] = {{"unit", 1}, {"raw", 255}, {"mobilenet", 1}, {"ultraface", 1}, {"imagenet", (1 - 0.485f) / 0.229f}};
  for (const auto& c : cases) {
    auto p = preprocess_preset(c.preset);
    ASSERT_TRUE(p.ok());
    p->width = 32, p->height = 24;
    const HostTensor t = *to_tensor(white, *p);
    EXPECT_EQ(t.shape, (Dims{1, 3, 24, 32}));
    EXPECT_NEAR(t.data<float>()[100], c.value, 1e-4f * std::abs(c.value)) << c.preset;
  }
  auto yolox = preprocess_preset("yolox");
  ASSERT_TRUE(yolox.ok());
  yolox->width = yolox->height = 64;
  Image red = white;
  for (size_t i = 0; i < red.pixels.size(); ++i) red.pixels[i] = i % 3 == 0 ? 255.f : 0.f;
  const HostTensor t = *to_tensor(red, *yolox);
  EXPECT_NEAR(t.data<float>()[0], 0, 1e-3);              // blue first
  EXPECT_NEAR(t.data<float>()[2 * 64 * 64], 255, 1e-2);  // red last
  EXPECT_NEAR(t.data<float>()[64 * 64 - 1], 114, 1e-3);  // the rest of the letterbox
  EXPECT_FALSE(preprocess_preset("other").ok());
}

}  // namespace
}  // namespace sparkle
