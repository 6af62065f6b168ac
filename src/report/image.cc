#include "report/image.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>

#include "base/out_of_memory.h"
#include "base/mapped_file.h"
#include "report/jpeg_check.h"
#include "report/png_check.h"

#define STBI_ONLY_JPEG
#define STBI_ONLY_PNG
#define STBI_ONLY_BMP
#define STBI_ONLY_PNM
#define STBI_NO_STDIO
#define STBI_MAX_DIMENSIONS 65536
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_WRITE_NO_STDIO
#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#endif
#include <stb/stb_image.h>
#include <stb/stb_image_write.h>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

namespace sparkle {
namespace {

constexpr std::streamoff kMaxFileBytes = std::streamoff{1} << 30;

template <class Sample>
Image from_samples(const Sample* samples, int width, int height, int stored, float factor) {
  const bool alpha = stored == 2 || stored == 4;
  const int channels = stored >= 3 ? 3 : 1;
  Image image = Image::filled(width, height, channels, 0);
  const size_t count = static_cast<size_t>(width) * static_cast<size_t>(height);
  for (size_t p = 0; p < count; ++p) {
    const Sample* s = samples + p * stored;
    const float a = alpha ? static_cast<float>(s[stored - 1]) * factor / 255.f : 1.f;
    for (int c = 0; c < channels; ++c)
      image.pixels[p * channels + c] = static_cast<float>(s[c]) * factor * a + 255.f * (1.f - a);
  }
  return image;
}

struct DeclaredSize {
  int64_t width = 0, height = 0;
};

// Of a PNG file: its decoder refuses large pictures as if they were none.
std::optional<DeclaredSize> png_size(std::span<const std::byte> bytes) {
  constexpr unsigned char kSignature[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  if (bytes.size() < 24 || std::memcmp(bytes.data(), kSignature, sizeof kSignature) != 0) return {};
  const auto number = [&](size_t at) {
    int64_t value = 0;
    for (size_t i = at; i < at + 4; ++i) value = value << 8 | static_cast<int64_t>(bytes[i]);
    return value;
  };
  return DeclaredSize{number(16), number(20)};
}

Status check_size(const DeclaredSize& size, const std::string& file, int64_t max_pixels) {
  constexpr int64_t kLongestSide = STBI_MAX_DIMENSIONS;
  const std::string declared = "'" + file + "' declares " + std::to_string(size.width) + "x" + std::to_string(size.height);
  if (size.width > kLongestSide || size.height > kLongestSide)
    return Error{Reason::size_overflow,
                 declared + " pixels; at most " + std::to_string(kLongestSide) + " a side are read, make it smaller first."};
  if (size.width * size.height > max_pixels)
    return Error{Reason::size_overflow, declared + " pixels; at most " + std::to_string(max_pixels / 1000000) +
                                            " million are read, make it smaller first."};
  return ok();
}

Result<Image> decoded(std::span<const std::byte> bytes, const std::string& file, int64_t max_pixels) {
  bytes = checked_jpeg(bytes);
  if (const auto size_declared = png_size(bytes)) SPARKLE_CHECK(check_size(*size_declared, file, max_pixels));
  if (!png_chunks_fit(bytes))
    return Error{Reason::bad_format, "'" + file + "' is a damaged PNG file: a part of it claims more bytes than there are."};
  std::vector<std::byte> kept;
  bytes = without_empty_data(bytes, kept);
  const auto* data = reinterpret_cast<const stbi_uc*>(bytes.data());
  const int size = static_cast<int>(std::min<size_t>(bytes.size(), size_t{1} << 30));
  int width = 0, height = 0, stored = 0;
  if (!stbi_info_from_memory(data, size, &width, &height, &stored))
    return Error{
        Reason::bad_format,
        "'" + file + "' is not a picture that can be read; give a JPEG, PNG, BMP or PNM file, or a tensor as .npy or .pb."};
  if (width < 1 || height < 1) return Error{Reason::bad_format, "'" + file + "' declares a picture without pixels."};
  SPARKLE_CHECK(check_size({width, height}, file, max_pixels));
  // The decoder takes what memory held for the missing pixels of a PNM file.
  const bool pnm = size > 1 && data[0] == 'P' && (data[1] == '5' || data[1] == '6');
  const bool wide = stbi_is_16_bit_from_memory(data, size) != 0;
  if (pnm && static_cast<int64_t>(width) * height * stored * (wide ? 2 : 1) > size)
    return Error{Reason::bad_format, "'" + file + "' is cut short: its pixels are missing."};
  const auto freed = [](void* p) { stbi_image_free(p); };
  const std::unique_ptr<void, decltype(freed)> samples(
      wide ? static_cast<void*>(stbi_load_16_from_memory(data, size, &width, &height, &stored, 0))
           : static_cast<void*>(stbi_load_from_memory(data, size, &width, &height, &stored, 0)),
      freed);
  if (!samples || stored < 1 || stored > 4 || width < 1 || height < 1 || static_cast<int64_t>(width) * height > max_pixels)
    return Error{Reason::bad_format, "'" + file + "' is damaged or of a kind of picture that is not read (" +
                                         std::string(stbi_failure_reason() ? stbi_failure_reason() : "no reason") +
                                         "); save it again as PNG."};
  return wide ? from_samples(static_cast<const stbi_us*>(samples.get()), width, height, stored, 1.f / 257.f)
              : from_samples(static_cast<const stbi_uc*>(samples.get()), width, height, stored, 1.f);
}

}  // namespace

Image Image::filled(int width, int height, int channels, float value) {
  Image image{width, height, channels, {}};
  image.pixels.assign(static_cast<size_t>(width) * static_cast<size_t>(height) * static_cast<size_t>(channels), value);
  return image;
}

Result<Image> read_image_bytes(std::span<const std::byte> bytes, const std::string& file, int64_t max_pixels) {
  return guard_memory("Reading the picture", [&] { return decoded(bytes, file, max_pixels); });
}

Result<Image> read_image(const std::string& path) {
  std::error_code error;
  if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error))
    return Error{Reason::file_unreadable, "'" + path + "' is not a file; give a picture."};
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = in ? static_cast<std::streamoff>(in.tellg()) : -1;
  if (size < 0) return Error{Reason::file_unreadable, "The picture '" + path + "' cannot be read; check the path."};
  if (size > kMaxFileBytes) return Error{Reason::size_overflow, "The picture '" + path + "' is larger than 1 GiB."};
  return guard_memory("Reading the picture", [&]() -> Result<Image> {
    std::vector<std::byte> bytes(static_cast<size_t>(size));
    in.seekg(0);
    if (!in.read(reinterpret_cast<char*>(bytes.data()), size))
      return Error{Reason::file_unreadable, "The picture '" + path + "' cannot be read; it may be a folder."};
    return decoded(bytes, path, kMaxPixels);
  });
}

Status write_png(const std::string& path, const Image& image) {
  std::vector<unsigned char> samples(image.pixels.size());
  std::transform(image.pixels.begin(), image.pixels.end(), samples.begin(), [](float v) {
    return static_cast<unsigned char>(v > 0 ? std::min(255.f, v + 0.5f) : 0.f);  // NaN becomes 0
  });
  std::string encoded;
  const auto append = [](void* text, void* data, int size) {
    static_cast<std::string*>(text)->append(static_cast<const char*>(data), static_cast<size_t>(size));
  };
  if (!stbi_write_png_to_func(append, &encoded, image.width, image.height, image.channels, samples.data(),
                              image.width * image.channels))
    return Error{Reason::file_unwritable, "The picture '" + path + "' cannot be encoded as PNG."};
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
  for (size_t p = 0; p < grey.pixels.size(); ++p) {
    const float* rgb = image.pixels.data() + 3 * p;
    grey.pixels[p] = 0.299f * rgb[0] + 0.587f * rgb[1] + 0.114f * rgb[2];
  }
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
