#include "vision/pictures/pnm.h"

#include <algorithm>
#include <cstring>

#include "vision/pictures/picture_size.h"

namespace sparkle {
namespace {

constexpr int64_t kMost = int64_t{1} << 40;  // where numbers of the header stop to grow

// White space and comments, at least one byte of them, then a number; -1 where there is none.
int64_t number_at(std::span<const std::byte> bytes, size_t& at) {
  const auto byte = [&] { return at < bytes.size() ? static_cast<int>(bytes[at]) : -1; };
  const auto space = [&] { return byte() == ' ' || (byte() >= '\t' && byte() <= '\r'); };
  if (!space() && byte() != '#') return -1;
  while (space() || byte() == '#') {
    if (byte() == '#')
      while (byte() >= 0 && byte() != '\n' && byte() != '\r') ++at;
    else ++at;
  }
  if (byte() < '0' || byte() > '9') return -1;
  int64_t value = 0;
  for (; byte() >= '0' && byte() <= '9'; ++at) value = std::min(value * 10 + (byte() - '0'), kMost);
  return value;
}

}  // namespace

bool is_pnm(std::span<const std::byte> bytes) {
  return bytes.size() > 2 && bytes[0] == std::byte{'P'} && (bytes[1] == std::byte{'5'} || bytes[1] == std::byte{'6'});
}

Result<Picture> read_pnm(std::span<const std::byte> bytes, const std::string& file, int64_t max_pixels) {
  const auto bad = [&](const std::string& why) { return Error{Reason::bad_format, "'" + file + "' " + why}; };
  size_t at = 2;
  const int64_t width = number_at(bytes, at), height = number_at(bytes, at), most = number_at(bytes, at);
  if (width < 0 || height < 0 || most < 0)
    return bad("is a damaged PNM file: its header does not give width, height and largest value.");
  if (width == 0 || height == 0) return bad("declares a picture without pixels.");
  if (most == 0 || most > 65535)
    return bad("declares " + std::to_string(most) + " as the largest value of a sample; PNM files have 1 to 65535.");
  SPARKLE_CHECK(check_picture_size(width, height, file, max_pixels));
  ++at;  // one byte of white space
  Picture picture;
  picture.width = static_cast<int>(width), picture.height = static_cast<int>(height);
  picture.stored = bytes[1] == std::byte{'6'} ? 3 : 1;
  picture.white = static_cast<float>(most);
  picture.wide = most > 255;
  const auto count = static_cast<size_t>(width * height * picture.stored);
  const size_t needed = count * (picture.wide ? 2 : 1), there = at < bytes.size() ? bytes.size() - at : 0;
  if (there < needed)
    return bad("is cut short: of its " + std::to_string(needed) + " bytes of pixels there are " + std::to_string(there) + ".");
  const auto* from = reinterpret_cast<const unsigned char*>(bytes.data()) + at;
  if (picture.wide) {
    const std::shared_ptr<uint16_t[]> samples(new uint16_t[count]);
    for (size_t i = 0; i < count; ++i)
      samples[i] = static_cast<uint16_t>(std::min<int64_t>(most, from[2 * i] << 8 | from[2 * i + 1]));
    picture.samples = {samples, samples.get()};
  } else {
    const std::shared_ptr<uint8_t[]> samples(new uint8_t[count]);
    for (size_t i = 0; i < count; ++i) samples[i] = static_cast<uint8_t>(std::min<int64_t>(most, from[i]));
    picture.samples = {samples, samples.get()};
  }
  return picture;
}

}  // namespace sparkle
