#include "vision/decoders/upright.h"

#include <cstring>
#include <utility>

namespace sparkle {
namespace {

constexpr unsigned kOrientationTag = 0x0112;

template <class Sample>
std::shared_ptr<const void> turned(const Picture& p, int orientation) {
  // From 5 on rows and columns are swapped; then either may be mirrored.
  const bool swapped = orientation >= 5;
  const bool mirror_columns = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool mirror_rows = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const int width = swapped ? p.height : p.width, height = swapped ? p.width : p.height;
  const auto stored = static_cast<size_t>(p.stored), across = static_cast<size_t>(p.width);
  const std::shared_ptr<Sample[]> samples(new Sample[across * static_cast<size_t>(p.height) * stored]);
  const auto* from = static_cast<const Sample*>(p.samples.get());
  Sample* to = samples.get();
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x, to += stored) {
      int row = swapped ? x : y, column = swapped ? y : x;
      if (mirror_rows) row = p.height - 1 - row;
      if (mirror_columns) column = p.width - 1 - column;
      std::memcpy(to, from + (static_cast<size_t>(row) * across + static_cast<size_t>(column)) * stored,
                  stored * sizeof(Sample));
    }
  return {samples, samples.get()};
}

}  // namespace

int exif_orientation(std::span<const std::byte> exif) {
  if (exif.size() < 8) return 1;
  const bool little = exif[0] == std::byte{'I'};
  const auto number = [&](size_t at, size_t bytes) {
    unsigned value = 0;
    for (size_t i = 0; i < bytes; ++i) value |= static_cast<unsigned>(exif[at + i]) << 8 * (little ? i : bytes - 1 - i);
    return value;
  };
  const size_t directory = number(4, 4);
  if (directory > exif.size() - 2) return 1;
  const size_t entries = number(directory, 2);
  for (size_t i = 0, at = directory + 2; i < entries && at + 12 <= exif.size(); ++i, at += 12) {
    if (number(at, 2) != kOrientationTag) continue;
    const unsigned value = number(at + 8, 2);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

Picture turned_upright(Picture picture, int orientation) {
  if (orientation < 2 || orientation > 8) return picture;
  picture.samples = picture.wide ? turned<uint16_t>(picture, orientation) : turned<uint8_t>(picture, orientation);
  if (orientation >= 5) std::swap(picture.width, picture.height);
  return picture;
}

}  // namespace sparkle
