#include "report/pictures/guards/bmp_check.h"

#include <algorithm>
#include <cstdlib>

namespace sparkle {

bool is_bmp(std::span<const std::byte> bytes) {
  return bytes.size() > 2 && bytes[0] == std::byte{'B'} && bytes[1] == std::byte{'M'};
}

namespace {

// Little-endian.
uint32_t number_at(std::span<const std::byte> bytes, size_t at, size_t count) {
  uint32_t value = 0;
  for (size_t i = 0; i < count; ++i) value |= std::to_integer<uint32_t>(bytes[at + i]) << 8 * i;
  return value;
}

}  // namespace

Result<std::pair<int64_t, int64_t>> checked_bmp(std::span<const std::byte> bytes, const std::string& file) {
  const auto bad = [&](const std::string& why) { return Error{Reason::bad_format, "'" + file + "' " + why}; };
  // BITMAPFILEHEADER: 10 place of the pixels; then 14 size of the second header, 18 width, 22 height (OS/2's
  // header of 12 bytes: two bytes each, 24 bits a pixel), 28 bits a pixel.
  const auto number = [&](size_t at, size_t count) { return number_at(bytes, at, count); };
  if (bytes.size() < 26) return bad("is cut short inside its header.");
  const bool small = number(14, 4) == 12;
  if (!small && bytes.size() < 30) return bad("is cut short inside its header.");
  const int64_t width = small ? number(18, 2) : static_cast<int32_t>(number(18, 4));
  const int64_t height = small ? number(20, 2) : std::abs(static_cast<int64_t>(static_cast<int32_t>(number(22, 4))));
  const int64_t bits = small ? number(24, 2) : number(28, 2);
  if (width < 1 || height < 1) return bad("declares a picture without pixels.");
  if (bits < 1 || bits > 32) return bad("declares " + std::to_string(bits) + " bits a pixel; BMP files have 1 to 32.");
  if (width > (int64_t{1} << 40) / height) return std::pair(width, height);     // too large to count bytes of, or to be read
  const int64_t pixels_at = number(10, 4), row = (width * bits + 31) / 32 * 4;  // rows end at multiples of four bytes
  const int64_t there = static_cast<int64_t>(bytes.size()) - pixels_at, needed = row * (height - 1) + (width * bits + 7) / 8;
  if (there < needed)
    return bad("is cut short: of its " + std::to_string(needed) + " bytes of pixels there are " +
               std::to_string(std::max<int64_t>(there, 0)) + ".");
  return std::pair(width, height);
}

std::span<const std::byte> bmp_for_decoder(std::span<const std::byte> bytes, std::vector<std::byte>& kept) {
  constexpr int64_t kColours = 256, kFileHeader = 14;
  const int64_t header = number_at(bytes, 14, 4), pixels_at = number_at(bytes, 10, 4);
  const bool small = header == 12;
  if (number_at(bytes, small ? 24 : 28, 2) > 8) return bytes;
  // As the decoder counts them.
  const int64_t entry = small ? 3 : 4, colours = (pixels_at - kFileHeader - (small ? 24 : header)) / entry;
  if (colours < 1 || colours >= kColours || pixels_at > static_cast<int64_t>(bytes.size())) return bytes;
  const int64_t missing = (kColours - colours) * entry;
  kept.assign(bytes.begin(), bytes.begin() + pixels_at);
  kept.resize(kept.size() + static_cast<size_t>(missing));
  kept.insert(kept.end(), bytes.begin() + pixels_at, bytes.end());
  for (size_t i = 0; i < 4; ++i) kept[10 + i] = static_cast<std::byte>((pixels_at + missing) >> 8 * i & 0xff);
  return kept;
}

}  // namespace sparkle
