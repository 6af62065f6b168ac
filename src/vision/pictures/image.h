// Pictures as floats: reading JPEG, PNG, BMP and PNM, writing PNG, resampling. Values 0..255, rows top down, channels last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace sparkle {

struct Image {
  int width = 0, height = 0;
  int channels = 3;  // 3: RGB, 1: grey
  std::vector<float> pixels;

  static Image filled(int width, int height, int channels, float value);
  float* at(int x, int y) { return pixels.data() + (static_cast<size_t>(y) * width + x) * channels; }
  const float* at(int x, int y) const { return pixels.data() + (static_cast<size_t>(y) * width + x) * channels; }
  std::string size_text() const { return std::to_string(width) + "x" + std::to_string(height); }
};

// A picture given row by row, from wherever it is kept: `row(y)` is valid until the next call.
struct Rows {
  int width = 0, height = 0, channels = 3;
  std::function<const float*(int y)> row;
};
Rows rows_of(const Image& image);  // which must outlive them

// More pixels than this are refused before anything is allocated.
inline constexpr int64_t kMaxPixels = 100'000'000;

// Alpha is composited over white; 16-bit samples become fractions. Errors: file_unreadable, bad_format, size_overflow.
Result<Image> read_image(const std::string& path);
// The same from memory; `file` is what errors call it.
Result<Image> read_image_bytes(std::span<const std::byte> bytes, const std::string& file, int64_t max_pixels = kMaxPixels);
// Rounded and clamped to 8 bits; what is no number becomes 0.
void to_bytes(std::span<const float> samples, uint8_t* to);
Status write_png(const std::string& path, const Image& image);

Image crop(const Image& image, int x, int y, int width, int height);
// Luma of ITU-R BT.601 (Y of JPEG's YCbCr); grey from RGB is the same.
inline float luma(const float* rgb) { return 0.299f * rgb[0] + 0.587f * rgb[1] + 0.114f * rgb[2]; }
Image to_grey(const Image& image);
Image to_rgb(const Image& image);
void paste(Image& canvas, const Image& part, int x, int y);

}  // namespace sparkle
