#include "vision/pictures/picture.h"

#include "base/files/byte_stream.h"
#include "base/files/read_file.h"
#include "base/system/out_of_memory.h"
#include "vision/decoders/decoders.h"
#include "vision/pictures/bmp.h"
#include "vision/pictures/pnm.h"

namespace sparkle {
namespace {

constexpr int64_t kMaxFileBytes = int64_t{1} << 30;

template <class Sample>
void row_of(const Sample* s, const Picture& p, float* to) {
  const bool alpha = p.stored == 2 || p.stored == 4;
  const int channels = p.channels();
  const float factor = p.white == 255.f ? 1.f : 255.f / p.white;
  for (int x = 0; x < p.width; ++x, s += p.stored, to += channels) {
    const float a = alpha ? static_cast<float>(s[p.stored - 1]) * factor / 255.f : 1.f;
    for (int c = 0; c < channels; ++c) to[c] = static_cast<float>(s[c]) * factor * a + 255.f * (1.f - a);
  }
}

Result<Picture> decoded(std::span<const std::byte> bytes, const std::string& file, int64_t max_pixels) {
  if (is_pnm(bytes)) return read_pnm(bytes, file, max_pixels);
  if (is_bmp(bytes)) return read_bmp(bytes, file, max_pixels);
  SPARKLE_TRY(known, decoders());
  for (const Decoder& decoder : known->formats) {
    if (!decoder.is(bytes)) continue;
    if (decoder.decode) return decoder.decode({bytes, file, max_pixels});
    return Error{Reason::bad_format, "'" + file + "' is a " + decoder.format +
                                         " file, which this build does not read, as it was made without " + decoder.library +
                                         "; save it in another format."};
  }
  return Error{Reason::bad_format, "'" + file +
                                       "' is not a picture that can be read; give a JPEG, PNG, WebP, TIFF, BMP or PNM file, "
                                       "or a tensor as .npy, .npz or .pb."};
}

}  // namespace

void Picture::row(int y, float* to) const {
  const size_t at = static_cast<size_t>(y) * static_cast<size_t>(width) * static_cast<size_t>(stored);
  if (wide) row_of(static_cast<const uint16_t*>(samples.get()) + at, *this, to);
  else row_of(static_cast<const uint8_t*>(samples.get()) + at, *this, to);
}

Image Picture::image() const {
  Image image = Image::filled(width, height, channels(), 0);
  for (int y = 0; y < height; ++y) row(y, image.at(0, y));
  return image;
}

Rows Picture::rows() const {
  return {width, height, channels(),
          [this, line = std::vector<float>(static_cast<size_t>(width) * static_cast<size_t>(channels()))](int y) mutable {
            row(y, line.data());
            return static_cast<const float*>(line.data());
          }};
}

Result<Picture> read_picture_bytes(std::span<const std::byte> bytes, const std::string& file, int64_t max_pixels) {
  return guard_memory("Reading the picture", [&] { return decoded(bytes, file, max_pixels); });
}

Result<Picture> read_picture(const std::string& path) {
  return guard_memory("Reading the picture", [&]() -> Result<Picture> {
    if (path == "-") {
      SPARKLE_TRY(bytes, read_standard_input("picture", kMaxFileBytes));
      return decoded(std::as_bytes(std::span(bytes)), "standard input", kMaxPixels);
    }
    SPARKLE_TRY(bytes, read_file(path, {"picture", kMaxFileBytes, true}));
    return decoded(std::as_bytes(std::span(bytes)), path, kMaxPixels);
  });
}

}  // namespace sparkle
