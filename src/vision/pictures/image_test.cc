#include "vision/pictures/image.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "vision/decoders/npz.h"
#include "vision/pictures/picture.h"
#include "vision/pictures/preprocess.h"
#include "vision/pictures/resample.h"

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

constexpr const char* kSeeds = SPARKLE_SOURCE_DIR "/tests/fuzz/seeds/";

// Left half red, right half blue, the upper row green.
TEST(Image, FormatsGiveTheSamePixels) {
  constexpr struct {
    const char* file;
    int width, height, channels;
    std::array<int, 3> upper_left, lower_left, lower_right;
    int tolerance;
  } kCases[] = {
      {"rgb.webp", 6, 4, 3, {0, 255, 0}, {255, 0, 0}, {0, 0, 255}, 0},
      {"rgba.webp", 6, 4, 3, {0, 255, 0}, {255, 0, 0}, {255, 255, 255}, 0},  // its last pixel is clear
      {"lzw.tif", 6, 4, 3, {0, 255, 0}, {255, 0, 0}, {0, 0, 255}, 0},
      {"rgba.tif", 6, 4, 3, {0, 255, 0}, {255, 0, 0}, {255, 255, 255}, 0},
      {"cmyk.jpg", 48, 32, 3, {0, 255, 0}, {255, 0, 0}, {0, 0, 255}, 6},
      // A quarter turn clockwise: what was left is above. And one the other way.
      {"exif6.jpg", 32, 48, 3, {255, 0, 0}, {0, 0, 255}, {0, 255, 0}, 6},
      {"exif6.png", 4, 6, 3, {255, 0, 0}, {0, 0, 255}, {0, 255, 0}, 0},
      {"exif8.webp", 4, 6, 3, {0, 255, 0}, {0, 255, 0}, {255, 0, 0}, 0},
  };
  for (const auto& c : kCases) {
    const auto image = read_image(std::string(kSeeds) + c.file);
    ASSERT_TRUE(image.ok()) << c.file << ": " << image.error().message;
    ASSERT_TRUE(image->width == c.width && image->height == c.height && image->channels == c.channels) << c.file;
    const auto near = [&](int x, int y, const std::array<int, 3>& want) {
      for (int i = 0; i < 3; ++i) EXPECT_NEAR(image->at(x, y)[i], want[i], c.tolerance) << c.file << " " << x << "," << y;
    };
    near(0, 0, c.upper_left), near(0, c.height - 1, c.lower_left), near(c.width - 1, c.height - 1, c.lower_right);
  }
}

TEST(Image, SixteenBitsOfPngAndTiffAreKept) {
  for (const char* file : {"grey16.png", "grey16.tif"}) {
    const auto image = read_image(std::string(kSeeds) + file);
    ASSERT_TRUE(image.ok()) << image.error().message;
    ASSERT_EQ(image->channels, 1) << file;
    for (int i = 0; i < 24; ++i) EXPECT_NEAR(image->pixels[static_cast<size_t>(i)], i * 2570 / 257.0, 1e-3) << file << " " << i;
  }
}

// Cut anywhere: refused, or the whole picture where only what follows its pixels is missing; never a crash.
TEST(Image, FilesCutShortAreRefused) {
  for (const char* file : {"rgb.jpg", "progressive.jpg", "rgb.webp", "lzw.tif", "grey16.png", "cmyk.jpg"}) {
    std::ifstream in(std::string(kSeeds) + file, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(in)), {});
    ASSERT_TRUE(parse(bytes).ok()) << file;
    for (size_t keep = 0; keep < bytes.size(); ++keep) (void)parse(bytes.substr(0, keep)).ok();
    EXPECT_FALSE(parse(bytes.substr(0, bytes.size() / 2)).ok()) << file;
  }
}

TEST(Image, JpegScansWithoutTheirTablesTakeTheStandardOnes) {
  for (const char* whole : {"rgb.jpg", "grey.jpg", "progressive.jpg"})
    EXPECT_TRUE(read_image(std::string(kSeeds) + whole).ok()) << whole;
  const auto damaged = read_image(std::string(kSeeds) + "undefined_table.jpg");
  if (!damaged.ok()) {
    EXPECT_EQ(damaged.error().reason, Reason::bad_format);
  }
}

TEST(Npz, ArraysComeByTheirNames) {
  const auto arrays = read_npz(std::string(kSeeds) + "npz/two.npz");
  ASSERT_TRUE(arrays.ok()) << arrays.error().message;
  ASSERT_EQ(arrays->size(), 2u);
  EXPECT_EQ((*arrays)[0].name, "x");
  EXPECT_EQ((*arrays)[0].value.shape, (Dims{2, 3}));
  EXPECT_EQ((*arrays)[0].value.data<float>()[5], 5);
  EXPECT_EQ((*arrays)[1].name, "y");
  EXPECT_EQ((*arrays)[1].value.data<int64_t>()[0], 7);
  const auto deflated = read_npz(std::string(kSeeds) + "npz/deflated.npz");
  ASSERT_TRUE(deflated.ok()) << deflated.error().message;
  EXPECT_EQ((*deflated)[0].value.shape, (Dims{8, 8}));
}

TEST(Npz, DamagedArchivesAreRefused) {
  for (const char* file : {"npz/two.npz", "npz/deflated.npz"}) {
    std::ifstream in(std::string(kSeeds) + file, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(in)), {});
    const auto read = [](const std::string& s) { return read_npz_bytes(std::as_bytes(std::span(s)), "test").ok(); };
    ASSERT_TRUE(read(bytes));
    for (size_t keep = 0; keep < bytes.size(); ++keep) EXPECT_FALSE(read(bytes.substr(0, keep))) << file << " " << keep;
    for (size_t at = 0; at < bytes.size(); ++at) {  // no crash
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(~damaged[at]);
      (void)read(damaged);
    }
  }
}

TEST(Image, SixteenBitsBecomeFractions) {
  auto image = parse(std::string("P5\n2 1\n65535\n") + std::string("\xff\xff\x01\x01", 4));
  ASSERT_TRUE(image.ok()) << image.error().message;
  EXPECT_EQ(image->channels, 1);
  EXPECT_NEAR(image->pixels[0], 255, 1e-3);
  EXPECT_NEAR(image->pixels[1], 1, 1e-3);
}

TEST(Image, PnmSamplesAreScaledByTheirLargestValue) {
  using namespace std::string_literals;
  const auto values = [](const std::string& text) {
    const auto image = parse(text);
    return image.ok() ? image->pixels : std::vector<float>{-1};
  };
  EXPECT_EQ(values("P5 3 1 100\n\0\x32\x64"s), (std::vector<float>{0, 127.5f, 255}));
  EXPECT_EQ(values("P6\n# made\n1 1 # by hand\n255\nabc"s), (std::vector<float>{'a', 'b', 'c'}));
  // Two bytes, the higher one first.
  const auto wide = values("P5\n3 1\n65535\n\x01\x00\x80\x00\x00\xff"s);
  ASSERT_EQ(wide.size(), 3u);
  for (const auto& [at, sample] : {std::pair{0, 256}, {1, 32768}, {2, 255}}) EXPECT_NEAR(wide[at], sample / 257.0, 1e-4) << at;
  EXPECT_NEAR(values("P5 1 1 1000\n\x01\xf4"s)[0], 127.5, 1e-3);
  EXPECT_EQ(values("P5 1 1 100\n\xff"s)[0], 255);  // beyond the largest value
}

TEST(Image, PnmHeadersAreReadWhole) {
  const auto why = [](const std::string& text) {
    const auto image = parse(text);
    return image.ok() ? "read" : image.error().message;
  };
  const std::string pixels(64, 'x');
  EXPECT_NE(why("P6 4294967298 1 255\n" + pixels).find("declares 4294967298x1 pixels"), std::string::npos);
  EXPECT_NE(why("P6 99999999999999999999999999 1 255\n" + pixels).find("at most 65536 a side"), std::string::npos);
  EXPECT_NE(why("P6 0 1 255\n" + pixels).find("without pixels"), std::string::npos);
  EXPECT_NE(why("P6 2 2 0\n" + pixels).find("largest value"), std::string::npos);
  EXPECT_NE(why("P6 2 2 65536\n" + pixels).find("largest value"), std::string::npos);
  EXPECT_NE(why("P6 2 -2 255\n" + pixels).find("header"), std::string::npos);
  EXPECT_NE(why("P6 2 2").find("header"), std::string::npos);
  EXPECT_NE(why("P6 8 8 255\n" + pixels).find("of its 192 bytes of pixels there are 64"), std::string::npos);
}

std::string little(uint32_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += i < 4 ? static_cast<char>(value >> 8 * i) : '\0';
  return text;
}

// 24 bits a pixel; a negative height: rows top down.
std::string bmp(int width, int height, const std::string& pixels) {
  return "BM" + little(static_cast<uint32_t>(54 + pixels.size()), 4) + little(0, 4) + little(54, 4) + little(40, 4) +
         little(static_cast<uint32_t>(width), 4) + little(static_cast<uint32_t>(height), 4) + little(1, 2) + little(24, 2) +
         little(0, 24) + pixels;
}

TEST(Image, BmpRowsGoEitherWay) {
  const std::string low("\x01\x02\x03\x04\x05\x06\0\0", 8), high("\x11\x12\x13\x14\x15\x16\0\0", 8);  // BGR, rows of 8 bytes
  const std::vector<float> want = {0x13, 0x12, 0x11, 0x16, 0x15, 0x14, 3, 2, 1, 6, 5, 4};
  for (const int height : {2, -2}) {
    const auto image = parse(bmp(2, height, height > 0 ? low + high : high + low));
    ASSERT_TRUE(image.ok()) << image.error().message;
    EXPECT_EQ(image->height, 2);
    EXPECT_EQ(image->pixels, want) << height;
  }
}

TEST(Image, BmpPixelsThatAreMissingAreNotBlack) {
  const auto why = [](const std::string& text) {
    const auto image = parse(text);
    return image.ok() ? "read" : image.error().message;
  };
  EXPECT_NE(why(bmp(1000, 1000, std::string(16, 'x'))).find("of its 3000000 bytes of pixels there are 16"), std::string::npos);
  EXPECT_NE(why(bmp(0, 5, "x")).find("without pixels"), std::string::npos);
  EXPECT_NE(why(bmp(2, INT32_MIN, "x")).find("at most 65536 a side"), std::string::npos);
  const std::string whole = bmp(2, 2, std::string(16, 'x'));
  for (size_t keep = 0; keep + 2 < whole.size(); ++keep) EXPECT_FALSE(parse(whole.substr(0, keep)).ok()) << keep;
}

std::string chunk(const std::string& type, const std::string& data) {
  std::string length = little(static_cast<uint32_t>(data.size()), 4);
  std::reverse(length.begin(), length.end());
  uint32_t crc = ~0u;
  for (const char c : type + data) {
    crc ^= static_cast<unsigned char>(c);
    for (int i = 0; i < 8; ++i) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
  }
  std::string sum = little(~crc, 4);
  std::reverse(sum.begin(), sum.end());
  return length + type + data + sum;
}

// The sum at the end of what zlib makes.
std::string adler(const std::string& rows) {
  uint32_t a = 1, b = 0;
  for (const char c : rows) a = (a + static_cast<unsigned char>(c)) % 65521, b = (b + a) % 65521;
  std::string sum = little(b << 16 | a, 4);
  std::reverse(sum.begin(), sum.end());
  return sum;
}

// Eight bits a pixel; `data`: what zlib would make of the rows, each behind the number of its filter.
std::string png(int width, int height, int color, const std::string& chunks, const std::string& data) {
  std::string w = little(static_cast<uint32_t>(width), 4), h = little(static_cast<uint32_t>(height), 4);
  std::reverse(w.begin(), w.end());
  std::reverse(h.begin(), h.end());
  const std::string rest{8, static_cast<char>(color), 0, 0, 0};
  return "\x89PNG\r\n\x1a\n" + chunk("IHDR", w + h + rest) + chunks + chunk("IDAT", data) + chunk("IEND", "");
}

std::string stored(const std::string& rows) {
  const auto size = static_cast<uint32_t>(rows.size());
  return "\x78\x01\x01" + little(size, 2) + little(~size, 2) + rows + adler(rows);
}

// The colours behind the palette were those of the stack.
TEST(Image, PngColoursBehindThePaletteAreBlack) {
  const std::string rows("\0\x00\x01\x02\xff", 5);
  const auto image = parse(png(4, 1, 3, chunk("PLTE", "abcdef"), stored(rows)));
  ASSERT_TRUE(image.ok()) << image.error().message;
  EXPECT_EQ(image->pixels, (std::vector<float>{'a', 'b', 'c', 'd', 'e', 'f', 0, 0, 0, 0, 0, 0}));
  const auto clear = parse(png(4, 1, 3, chunk("PLTE", "abcdef") + chunk("tRNS", std::string(1, '\0')), stored(rows)));
  ASSERT_TRUE(clear.ok()) << clear.error().message;
  EXPECT_EQ(clear->pixels, (std::vector<float>{255, 255, 255, 'd', 'e', 'f', 0, 0, 0, 0, 0, 0}));
  EXPECT_FALSE(parse(png(4, 1, 3, "", stored(rows))).ok());
  EXPECT_FALSE(parse(png(4, 1, 3, chunk("PLTE", ""), stored(rows))).ok());
}

TEST(Image, BmpColoursBehindThePaletteAreBlack) {
  std::string file = bmp(4, 1, "");
  file[28] = 8;  // bits a pixel: places in a palette of two colours
  file[10] = static_cast<char>(file[10] + 8);
  file += std::string("cba\0fed\0", 8) + std::string("\x00\x01\x02\xff", 4);
  for (int i = 0; i < 2; ++i) {
    const auto image = parse(file);
    ASSERT_TRUE(image.ok()) << image.error().message;
    EXPECT_EQ(image->pixels, (std::vector<float>{'a', 'b', 'c', 'd', 'e', 'f', 0, 0, 0, 0, 0, 0}));
  }
  EXPECT_FALSE(parse(bmp(INT32_MAX, INT32_MAX, "")).ok());
}

// Zeros by fixed codes: one literal, then repetitions of 258 bytes in 13 bits each.
std::string many_zeros(size_t repetitions) {
  std::string data = "\x78\x01";
  uint32_t bits = 0;
  int count = 0;
  const auto put = [&](uint32_t value, int width) {  // Huffman codes come highest bit first
    for (int i = width - 1; i >= 0; --i) {
      bits |= (value >> i & 1) << count;
      if (++count == 8) data += static_cast<char>(bits), bits = 0, count = 0;
    }
  };
  put(1, 1), put(2, 2);  // the last block, of kind 1 (lowest bit first: 10)
  put(0x30, 8);          // a literal 0
  for (size_t i = 0; i < repetitions; ++i) put(0xc5, 8), put(0, 5);
  put(0, 7), put(0, 7);
  return data + adler(std::string(1 + 258 * repetitions, '\0'));
}

TEST(Image, PngDataUnfoldsNoFurtherThanThePicture) {
  ASSERT_TRUE(parse(png(257, 2, 0, "", many_zeros(2))).ok());      // the codes are right: 517 bytes for 516
  const std::string bomb = png(8, 8, 0, "", many_zeros(400'000));  // 650 KB, of which 100 MB would come
  const auto peak = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;  // KiB
  };
  const auto before = peak();
  EXPECT_TRUE(parse(bomb).ok());
  EXPECT_LT(peak() - before, 20 << 10);
}

// The rows of a large picture become floats one by one.
TEST(Preprocess, LargePicturesAreNotUnfolded) {
  const int side = 4000;
  const std::string header = "P6 4000 4000 255\n";
  std::string bytes = header + std::string(size_t{3} * side * side, '\x50');
  auto picture = read_picture_bytes(std::as_bytes(std::span(bytes)), "test");
  ASSERT_TRUE(picture.ok()) << picture.error().message;
  auto p = preprocess_preset("imagenet");
  p->width = p->height = 224, p->shorter_side = 256;
  const auto floats = to_tensor(picture->image(), *p);
  const auto rows = to_tensor(picture->rows(), *p);
  ASSERT_TRUE(rows.ok() && floats.ok());
  ASSERT_EQ(rows->shape, floats->shape);
  EXPECT_EQ(std::memcmp(rows->bytes.get(), floats->bytes.get(), static_cast<size_t>(rows->size_bytes())), 0);
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
