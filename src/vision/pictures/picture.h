// A picture as its file holds it, 8 or 16 bits a sample, read row by row as floats: what is made of it need never be as large.
#pragma once

#include <memory>
#include <vector>

#include "base/tensor.h"
#include "vision/pictures/image.h"

namespace sparkle {

struct Picture {
  int width = 0, height = 0;
  int stored = 3;                       // channels in the file: 1 grey, 2 grey and alpha, 3 RGB, 4 RGB and alpha
  float white = 255;                    // the sample value of white
  std::shared_ptr<const void> samples;  // of `wide` pictures uint16_t, else uint8_t; rows top down
  bool wide = false;

  int channels() const { return stored >= 3 ? 3 : 1; }
  std::string size_text() const { return std::to_string(width) + "x" + std::to_string(height); }
  // channels() values 0..255 a pixel, alpha composited over white.
  void row(int y, float* to) const;
  Image image() const;
  Rows rows() const;  // of this picture, which must outlive them
};

// `path`: a file, or "-" for standard input. JPEG, PNG, WebP, TIFF, BMP and PNM, turned upright where the file says how it was
// taken. Errors: file_unreadable, bad_format, size_overflow, bad_format also for a format whose library this build lacks.
Result<Picture> read_picture(const std::string& path);
// The same from memory; `file` is what errors call it.
Result<Picture> read_picture_bytes(std::span<const std::byte> bytes, const std::string& file, int64_t max_pixels = kMaxPixels);

// Pixels that somebody has already, height x width or height x width x channels of u8 or u16: grey, grey and alpha, RGB, or RGB
// and alpha. Their memory is shared. Errors: bad_input for other tensors, size_overflow.
Result<Picture> picture_from_pixels(const HostTensor& pixels);
// As 8 bits a sample.
Picture picture_from_image(const Image& image);

}  // namespace sparkle
