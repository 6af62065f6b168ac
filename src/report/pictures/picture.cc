#include "report/pictures/picture.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "base/system/out_of_memory.h"
#include "base/files/read_file.h"
#include "report/pictures/guards/bmp_check.h"
#include "report/pictures/guards/jpeg_check.h"
#include "report/pictures/guards/png_check.h"
#include "report/pictures/pnm.h"

namespace sparkle {
namespace {

constexpr int64_t kMaxFileBytes = int64_t{1} << 30;

// Memory for the decoder: zeros, so that nothing of this process gets into a picture whose data is missing, and no more than
// the picture that its header declares can take, so that no data unfolds into memory without end.
struct DecoderMemory {
  size_t left = 0;
};
thread_local DecoderMemory decoder_memory;
constexpr size_t kSizeBytes = alignof(std::max_align_t);  // in front of each block: how large it is

void* take(size_t bytes) {
  if (bytes > decoder_memory.left) return nullptr;
  auto* block = static_cast<std::byte*>(std::calloc(bytes + kSizeBytes, 1));
  if (!block) return nullptr;
  decoder_memory.left -= bytes;
  std::memcpy(block, &bytes, sizeof bytes);
  return block + kSizeBytes;
}

size_t size_of_block(void* data) {
  size_t bytes = 0;
  std::memcpy(&bytes, static_cast<std::byte*>(data) - kSizeBytes, sizeof bytes);
  return bytes;
}

void give_back(void* data) {
  if (!data) return;
  decoder_memory.left += size_of_block(data);
  std::free(static_cast<std::byte*>(data) - kSizeBytes);
}

void* change(void* data, size_t bytes) {
  if (!data) return take(bytes);
  const size_t before = size_of_block(data);
  if (bytes > before && bytes - before > decoder_memory.left) return nullptr;
  auto* block = static_cast<std::byte*>(std::realloc(static_cast<std::byte*>(data) - kSizeBytes, bytes + kSizeBytes));
  if (!block) return nullptr;
  if (bytes > before) std::memset(block + kSizeBytes + before, 0, bytes - before);
  decoder_memory.left += before - bytes;
  std::memcpy(block, &bytes, sizeof bytes);
  return block + kSizeBytes;
}

}  // namespace
}  // namespace sparkle

#define STBI_MALLOC(bytes) sparkle::take(bytes)
#define STBI_REALLOC(data, bytes) sparkle::change(data, bytes)
#define STBI_FREE(data) sparkle::give_back(data)
#define STBI_ONLY_JPEG
#define STBI_ONLY_PNG
#define STBI_ONLY_BMP
#define STBI_NO_STDIO
#define STBI_MAX_DIMENSIONS 65536
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#endif
#include <stb/stb_image.h>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

namespace sparkle {
namespace {

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

// What decoding so many pixels of a PNG file may take beside the file: the unfolded data, which grows by doubling, the samples
// without filters, and once more with palette and alpha put in. Of a JPEG file: coefficients and samples of blocks of up to
// 32x32 pixels in up to four components, and the result.
size_t most_memory(int64_t width, int64_t height, bool png, bool wide, size_t file_bytes) {
  const int64_t pixels = png ? width * height : (width + 64) * (height + 64);
  const int64_t of_a_pixel = png && wide ? 32 : 16;
  return static_cast<size_t>(pixels * of_a_pixel + height * 16) + 4 * file_bytes + (size_t{1} << 20);
}

Result<Picture> decoded(std::span<const std::byte> bytes, const std::string& file, int64_t max_pixels) {
  if (is_pnm(bytes)) return read_pnm(bytes, file, max_pixels);
  bytes = checked_jpeg(bytes);
  // The decoder refuses large pictures as if they were none.
  const auto png = png_size(bytes);
  if (png) SPARKLE_CHECK(check_picture_size(png->first, png->second, file, max_pixels));
  if (!png_chunks_fit(bytes))
    return Error{Reason::bad_format, "'" + file + "' is a damaged PNG file: a part of it claims more bytes than there are."};
  std::vector<std::byte> kept;
  bytes = png_for_decoder(bytes, kept);
  const auto* data = reinterpret_cast<const stbi_uc*>(bytes.data());
  int size = static_cast<int>(std::min<size_t>(bytes.size(), size_t{1} << 30));
  int width = 0, height = 0, stored = 0;
  decoder_memory.left = size_t{1} << 20;
  if (is_bmp(bytes)) {
    SPARKLE_TRY(declared, checked_bmp(bytes, file));
    SPARKLE_CHECK(check_picture_size(declared.first, declared.second, file, max_pixels));
    bytes = bmp_for_decoder(bytes, kept);
    data = reinterpret_cast<const stbi_uc*>(bytes.data());
    size = static_cast<int>(std::min<size_t>(bytes.size(), size_t{1} << 30));
    width = static_cast<int>(declared.first), height = static_cast<int>(declared.second);
  } else if (!stbi_info_from_memory(data, size, &width, &height, &stored)) {
    return Error{
        Reason::bad_format,
        "'" + file + "' is not a picture that can be read; give a JPEG, PNG, BMP or PNM file, or a tensor as .npy or .pb."};
  }
  if (width < 1 || height < 1) return Error{Reason::bad_format, "'" + file + "' declares a picture without pixels."};
  SPARKLE_CHECK(check_picture_size(width, height, file, max_pixels));
  Picture picture;
  picture.wide = png && stbi_is_16_bit_from_memory(data, size) != 0;
  decoder_memory.left = most_memory(width, height, png.has_value(), picture.wide, bytes.size());
  void* samples = picture.wide ? static_cast<void*>(stbi_load_16_from_memory(data, size, &width, &height, &stored, 0))
                               : static_cast<void*>(stbi_load_from_memory(data, size, &width, &height, &stored, 0));
  picture.samples = std::shared_ptr<const void>(samples, [](const void* p) { stbi_image_free(const_cast<void*>(p)); });
  if (!samples || stored < 1 || stored > 4 || width < 1 || height < 1 || static_cast<int64_t>(width) * height > max_pixels)
    return Error{Reason::bad_format, "'" + file + "' is damaged or of a kind of picture that is not read (" +
                                         std::string(stbi_failure_reason() ? stbi_failure_reason() : "no reason") +
                                         "); save it again as PNG."};
  picture.width = width, picture.height = height, picture.stored = stored;
  picture.white = picture.wide ? 65535 : 255;
  return picture;
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
    SPARKLE_TRY(bytes, read_file(path, {"picture", kMaxFileBytes, true}));
    return decoded(std::as_bytes(std::span(bytes)), path, kMaxPixels);
  });
}

}  // namespace sparkle
