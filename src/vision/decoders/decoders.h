// Formats of pictures that libraries decode: libjpeg-turbo, libpng, libwebp, libtiff. They are a library of their own, so that
// what loads Sparkle needs none of them: the command links them, libsparkle.so asks for them when a picture is read.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>

#include "base/result.h"
#include "vision/pictures/picture.h"

namespace sparkle {

// A file in memory, what errors call it, and the most pixels that are read of it. Sizes are looked at before anything is
// allocated for them. Errors: bad_format, size_overflow.
struct PictureFile {
  std::span<const std::byte> bytes;
  const std::string& name;
  int64_t max_pixels = kMaxPixels;
};

struct Decoder {
  const char* format;   // "JPEG"
  const char* library;  // that a build without this decoder lacks, with its package in Debian
  bool (*is)(std::span<const std::byte> bytes);
  Result<Picture> (*decode)(const PictureFile& file);  // null: built without
};

bool is_jpeg(std::span<const std::byte> bytes);
bool is_png(std::span<const std::byte> bytes);
bool is_webp(std::span<const std::byte> bytes);
bool is_tiff(std::span<const std::byte> bytes);
Result<Picture> decode_jpeg(const PictureFile& file);
Result<Picture> decode_png(const PictureFile& file);
Result<Picture> decode_webp(const PictureFile& file);
Result<Picture> decode_tiff(const PictureFile& file);
// Samples of 8 bits a channel, 1 or 3 channels, rows dense. Errors: internal where the library refuses.
Result<std::string> encode_png(int width, int height, int channels, const unsigned char* samples);

struct Decoders {
  std::array<Decoder, 4> formats;
  Result<std::string> (*encode_png)(int width, int height, int channels, const unsigned char* samples);  // null: built without
};
// What is linked here, or loaded. Errors: file_unreadable naming the library that is missing.
Result<const Decoders*> decoders();

}  // namespace sparkle
