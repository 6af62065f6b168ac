#include "vision/pictures/picture.h"

#include "base/files/byte_stream.h"
#include "base/files/read_file.h"
#include "base/system/out_of_memory.h"
#include "vision/decoders/decoders.h"
#include "vision/pictures/picture_size.h"
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

Result<Picture> picture_from_pixels(const HostTensor& pixels) {
  const Dims& s = pixels.shape;
  const bool type = pixels.dtype == DType::u8 || pixels.dtype == DType::u16;
  if (!type || (s.size() != 2 && s.size() != 3) || (s.size() == 3 && (s[2] < 1 || s[2] > 4)))
    return Error{Reason::bad_input,
                 "Pixels are height x width x channels of u8 or u16, with 1 to 4 channels or without that axis; " +
                     std::string(name_of(pixels.dtype)) + " " + s.to_string() + " was given."};
  SPARKLE_CHECK(check_picture_size(s[1], s[0], "the array", kMaxPixels));
  Picture picture;
  picture.width = static_cast<int>(s[1]), picture.height = static_cast<int>(s[0]);
  picture.stored = s.size() == 3 ? static_cast<int>(s[2]) : 1;
  picture.wide = pixels.dtype == DType::u16, picture.white = picture.wide ? 65535.f : 255.f;
  picture.samples = std::shared_ptr<const void>(pixels.bytes, pixels.bytes.get());
  return picture;
}

Picture picture_from_image(const Image& image) {
  Picture picture;
  picture.width = image.width, picture.height = image.height, picture.stored = image.channels;
  const auto samples = std::make_shared<std::vector<uint8_t>>(image.pixels.size());
  to_bytes(image.pixels, samples->data());
  picture.samples = std::shared_ptr<const void>(samples, samples->data());
  return picture;
}

}  // namespace sparkle
