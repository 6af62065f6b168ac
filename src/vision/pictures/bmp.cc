#include "vision/pictures/bmp.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "vision/pictures/picture_size.h"

namespace sparkle {
namespace {

// Little-endian.
uint32_t little_at(std::span<const std::byte> bytes, size_t at, size_t count) {
  uint32_t value = 0;
  for (size_t i = 0; i < count; ++i) value |= std::to_integer<uint32_t>(bytes[at + i]) << 8 * i;
  return value;
}

struct BmpHeader {
  int64_t width = 0, height = 0, bits = 0, pixels_at = 0, palette_at = 0, entry = 4;
  bool top_down = false;
  uint32_t masks[4] = {};  // of red, green, blue and alpha in 16 and 32 bits; 0: there is none
};

// BITMAPFILEHEADER: 10 place of the pixels; then 14 size of the second header, 18 width, 22 height (OS/2's header of 12 bytes:
// two bytes each, 24 bits a pixel), 28 bits a pixel, 30 compression (0 none, 3 and 6 masks of channels), 54 masks.
Result<BmpHeader> read_header(std::span<const std::byte> bytes, const std::string& file, int64_t max_pixels) {
  const auto bad = [&](const std::string& why) { return Error{Reason::bad_format, "'" + file + "' " + why}; };
  const auto number = [&](size_t at, size_t count) { return little_at(bytes, at, count); };
  if (bytes.size() < 26) return bad("is cut short inside its header.");
  const int64_t second = number(14, 4);
  const bool small = second == 12;
  if (!small && bytes.size() < 34) return bad("is cut short inside its header.");
  BmpHeader h;
  const int64_t height = small ? int64_t{number(20, 2)} : int64_t{static_cast<int32_t>(number(22, 4))};
  h.width = small ? int64_t{number(18, 2)} : int64_t{static_cast<int32_t>(number(18, 4))};
  h.height = std::abs(height), h.top_down = height < 0;
  h.bits = small ? number(24, 2) : number(28, 2);
  h.pixels_at = number(10, 4), h.palette_at = 14 + second, h.entry = small ? 3 : 4;
  const uint32_t compression = small ? 0 : number(30, 4);
  if (h.width < 1 || h.height < 1) return bad("declares a picture without pixels.");
  static constexpr int kDepths[] = {1, 4, 8, 16, 24, 32};
  if (std::find(std::begin(kDepths), std::end(kDepths), h.bits) == std::end(kDepths))
    return bad("declares " + std::to_string(h.bits) + " bits a pixel; BMP files have 1, 4, 8, 16, 24 or 32.");
  SPARKLE_CHECK(check_picture_size(h.width, h.height, file, max_pixels));
  const bool masked = (compression == 3 || compression == 6) && (h.bits == 16 || h.bits == 32);
  if (compression != 0 && !masked) return bad("is a BMP file with compression, which is not read; save it as PNG.");
  const int64_t row = (h.width * h.bits + 31) / 32 * 4;  // rows end at multiples of four bytes
  const int64_t there = static_cast<int64_t>(bytes.size()) - h.pixels_at,
                needed = row * (h.height - 1) + (h.width * h.bits + 7) / 8;
  if (there < needed)
    return bad("is cut short: of its " + std::to_string(needed) + " bytes of pixels there are " +
               std::to_string(std::max<int64_t>(there, 0)) + ".");
  if (masked && bytes.size() < 70) return bad("is cut short inside its header.");
  const bool wide = h.bits == 32;
  for (size_t c = 0; c < 3; ++c) h.masks[c] = masked ? number(54 + 4 * c, 4) : wide ? 0xff0000u >> 8 * c : 0x7c00u >> 5 * c;
  if (masked && (compression == 6 || second >= 56)) h.masks[3] = number(66, 4);
  return h;
}

// The bits of a mask as 0..255; `none` where it has none.
uint8_t channel_of(uint32_t pixel, uint32_t mask, uint8_t none) {
  if (mask == 0) return none;
  const uint32_t most = mask >> std::countr_zero(mask), value = (pixel & mask) >> std::countr_zero(mask);
  return static_cast<uint8_t>((uint64_t{value} * 255 + most / 2) / most);
}

}  // namespace

bool is_bmp(std::span<const std::byte> bytes) {
  return bytes.size() > 2 && bytes[0] == std::byte{'B'} && bytes[1] == std::byte{'M'};
}

Result<Picture> read_bmp(std::span<const std::byte> bytes, const std::string& file, int64_t max_pixels) {
  SPARKLE_TRY(h, read_header(bytes, file, max_pixels));
  Picture picture;
  picture.width = static_cast<int>(h.width), picture.height = static_cast<int>(h.height);
  picture.stored = h.masks[3] != 0 && (h.bits == 16 || h.bits == 32) ? 4 : 3;
  const auto stored = static_cast<size_t>(picture.stored);
  const std::shared_ptr<uint8_t[]> samples(new uint8_t[static_cast<size_t>(h.width * h.height) * stored]());
  // Colours that the palette lacks are black.
  uint8_t palette[256][3] = {};
  for (int64_t i = 0; h.bits <= 8 && i < int64_t{1} << h.bits; ++i) {
    const int64_t at = h.palette_at + i * h.entry;
    if (at + 3 > std::min<int64_t>(h.pixels_at, static_cast<int64_t>(bytes.size()))) break;
    for (int64_t c = 0; c < 3; ++c) palette[i][c] = static_cast<uint8_t>(bytes[static_cast<size_t>(at + 2 - c)]);
  }
  const auto row = static_cast<size_t>((h.width * h.bits + 31) / 32 * 4), bits = static_cast<size_t>(h.bits);
  uint8_t* to = samples.get();
  for (int64_t y = 0; y < h.height; ++y) {
    const size_t line = static_cast<size_t>(h.pixels_at) + row * static_cast<size_t>(h.top_down ? y : h.height - 1 - y);
    for (size_t x = 0; x < static_cast<size_t>(h.width); ++x, to += stored) {
      const size_t at = line + x * bits / 8;
      if (bits <= 8) {
        const size_t shift = 8 - bits - x * bits % 8;
        std::copy_n(palette[static_cast<size_t>(bytes[at]) >> shift & ((size_t{1} << bits) - 1)], 3, to);
        continue;
      }
      const uint32_t pixel = little_at(bytes, at, bits / 8);
      for (size_t c = 0; c < 3; ++c)
        to[c] = bits == 24 ? static_cast<uint8_t>(pixel >> 8 * (2 - c)) : channel_of(pixel, h.masks[c], 0);
      if (stored == 4) to[3] = channel_of(pixel, h.masks[3], 255);
    }
  }
  picture.samples = {samples, samples.get()};
  return picture;
}

}  // namespace sparkle
