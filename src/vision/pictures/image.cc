#include "vision/pictures/image.h"

#include <algorithm>

#include "base/files/new_file.h"
#include "base/system/out_of_memory.h"
#include "vision/decoders/decoders.h"
#include "vision/pictures/picture.h"

namespace sparkle {

Image Image::filled(int width, int height, int channels, float value) {
  Image image{width, height, channels, {}};
  image.pixels.assign(static_cast<size_t>(width) * static_cast<size_t>(height) * static_cast<size_t>(channels), value);
  return image;
}

Rows rows_of(const Image& image) {
  return {image.width, image.height, image.channels, [&image](int y) { return image.at(0, y); }};
}

Result<Image> read_image_bytes(std::span<const std::byte> bytes, const std::string& file, int64_t max_pixels) {
  return guard_memory("Reading the picture", [&]() -> Result<Image> {
    SPARKLE_TRY(picture, read_picture_bytes(bytes, file, max_pixels));
    return picture.image();
  });
}

Result<Image> read_image(const std::string& path) {
  return guard_memory("Reading the picture", [&]() -> Result<Image> {
    SPARKLE_TRY(picture, read_picture(path));
    return picture.image();
  });
}

void to_bytes(std::span<const float> samples, uint8_t* to) {
  std::transform(samples.begin(), samples.end(), to,
                 [](float v) { return static_cast<uint8_t>(v > 0 ? std::min(255.f, v + 0.5f) : 0.f); });
}

Status write_png(const std::string& path, const Image& image) {
  std::vector<uint8_t> samples(image.pixels.size());
  to_bytes(image.pixels, samples.data());
  SPARKLE_TRY(known, decoders());
  if (!known->encode_png)
    return Error{Reason::bad_format,
                 "The picture '" + path + "' cannot be written: this build was made without libpng (Debian: libpng-dev)."};
  SPARKLE_TRY(encoded, known->encode_png(image.width, image.height, image.channels, samples.data()));
  return write_file(path, std::as_bytes(std::span(encoded)));
}

Image crop(const Image& image, int x, int y, int width, int height) {
  Image part = Image::filled(width, height, image.channels, 0);
  for (int row = 0; row < height; ++row)
    std::copy_n(image.at(x, y + row), static_cast<size_t>(width) * image.channels, part.at(0, row));
  return part;
}

Image to_grey(const Image& image) {
  if (image.channels == 1) return image;
  Image grey = Image::filled(image.width, image.height, 1, 0);
  for (size_t p = 0; p < grey.pixels.size(); ++p) grey.pixels[p] = luma(image.pixels.data() + 3 * p);
  return grey;
}

Image to_rgb(const Image& image) {
  if (image.channels == 3) return image;
  Image rgb = Image::filled(image.width, image.height, 3, 0);
  for (size_t i = 0; i < rgb.pixels.size(); ++i) rgb.pixels[i] = image.pixels[i / 3];
  return rgb;
}

void paste(Image& canvas, const Image& part, int x, int y) {
  for (int row = 0; row < part.height; ++row)
    std::copy_n(part.at(0, row), static_cast<size_t>(part.width) * part.channels, canvas.at(x, y + row));
}

}  // namespace sparkle
