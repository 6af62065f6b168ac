// PNG by libpng: every colour type and depth, interlaced or not, 16 bits kept, palettes and clear colours unfolded; and
// written.
#include <png.h>

#include <bit>
#include <cstring>

#include "vision/decoders/decoders.h"
#include "vision/decoders/upright.h"
#include "vision/pictures/picture_size.h"

namespace sparkle {
namespace {

constexpr png_alloc_size_t kMostChunk = png_alloc_size_t{8} << 20;  // of text, profiles and the like
constexpr png_uint_32 kMostChunks = 1000;

// All that a decoding makes lies here, where a jump out of libpng leaves it alone.
struct PngDecoding {
  std::span<const std::byte> left;
  char sentence[128] = {};
  png_structp png = nullptr;
  png_infop info = nullptr;
  Picture picture;
  std::shared_ptr<uint16_t[]> samples;
  Status size = ok();
  int orientation = 1;
};

void keep_sentence(char (&sentence)[128], png_const_charp why) { std::strncpy(sentence, why, sizeof sentence - 1); }

[[noreturn]] void png_refuses(png_structp png, png_const_charp why) {
  keep_sentence(static_cast<PngDecoding*>(png_get_error_ptr(png))->sentence, why);
  png_longjmp(png, 1);
}

void png_warns(png_structp, png_const_charp) {}

void read_png(png_structp png, png_bytep to, size_t bytes) {
  auto* d = static_cast<PngDecoding*>(png_get_io_ptr(png));
  if (bytes > d->left.size()) png_error(png, "it is cut short");
  std::memcpy(to, d->left.data(), bytes);
  d->left = d->left.subspan(bytes);
}

// False: libpng or the size refused.
bool decode_into(PngDecoding& d, const PictureFile& file) {
  if (setjmp(png_jmpbuf(d.png)) != 0) return false;
  png_set_read_fn(d.png, &d, read_png);
  png_set_user_limits(d.png, 0x7fffffff, 0x7fffffff);  // sizes are looked at below
  png_set_chunk_malloc_max(d.png, kMostChunk);
  png_set_chunk_cache_max(d.png, kMostChunks);
  png_read_info(d.png, d.info);
  const png_uint_32 width = png_get_image_width(d.png, d.info), height = png_get_image_height(d.png, d.info);
  d.size = check_picture_size(width, height, file.name, file.max_pixels);
  if (!d.size.ok()) return false;
  png_set_expand(d.png);  // palettes to RGB, 1 to 4 bits to 8, clear colours to alpha
  if (std::endian::native == std::endian::little) png_set_swap(d.png);
  const int passes = png_set_interlace_handling(d.png);
  png_read_update_info(d.png, d.info);
  d.picture.width = static_cast<int>(width), d.picture.height = static_cast<int>(height);
  d.picture.stored = png_get_channels(d.png, d.info);
  d.picture.wide = png_get_bit_depth(d.png, d.info) == 16;
  d.picture.white = d.picture.wide ? 65535 : 255;
  const size_t row = png_get_rowbytes(d.png, d.info);
  if (row != static_cast<size_t>(width) * static_cast<size_t>(d.picture.stored) * (d.picture.wide ? 2 : 1))
    png_error(d.png, "its rows are of no known length");
  d.samples.reset(new uint16_t[(row * height + 1) / 2]());
  for (int pass = 0; pass < passes; ++pass)
    for (png_uint_32 y = 0; y < height; ++y)
      png_read_row(d.png, reinterpret_cast<png_bytep>(d.samples.get()) + row * y, nullptr);
  png_read_end(d.png, d.info);
  png_uint_32 bytes = 0;
  png_bytep exif = nullptr;
  if (png_get_eXIf_1(d.png, d.info, &bytes, &exif) != 0 && exif)
    d.orientation = exif_orientation(std::as_bytes(std::span(exif, bytes)));
  return true;
}

struct PngEncoding {
  PngDecoding errors;  // what png_refuses() writes to
  std::string bytes;
  png_structp png = nullptr;
  png_infop info = nullptr;
};

bool encode_into(PngEncoding& e, int width, int height, int channels, const unsigned char* samples) {
  if (setjmp(png_jmpbuf(e.png)) != 0) return false;
  png_set_write_fn(
      e.png, &e.bytes,
      [](png_structp png, png_bytep from, size_t bytes) {
        static_cast<std::string*>(png_get_io_ptr(png))->append(reinterpret_cast<const char*>(from), bytes);
      },
      [](png_structp) {});
  png_set_IHDR(e.png, e.info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), 8,
               channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  png_write_info(e.png, e.info);
  const size_t row = static_cast<size_t>(width) * static_cast<size_t>(channels);
  for (int y = 0; y < height; ++y) png_write_row(e.png, const_cast<png_bytep>(samples + row * static_cast<size_t>(y)));
  png_write_end(e.png, e.info);
  return true;
}

}  // namespace

Result<Picture> decode_png(const PictureFile& file) {
  PngDecoding d;
  d.left = file.bytes;
  d.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &d, png_refuses, png_warns);
  d.info = d.png ? png_create_info_struct(d.png) : nullptr;
  const bool decoded = d.info && decode_into(d, file);
  png_destroy_read_struct(&d.png, &d.info, nullptr);
  if (!d.size.ok()) return d.size.take_error();
  if (!decoded)
    return Error{Reason::bad_format, "'" + file.name + "' is a damaged PNG file (" + d.sentence + "); save it again."};
  d.picture.samples = {d.samples, d.samples.get()};
  return turned_upright(std::move(d.picture), d.orientation);
}

Result<std::string> encode_png(int width, int height, int channels, const unsigned char* samples) {
  PngEncoding e;
  e.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &e.errors, png_refuses, png_warns);
  e.info = e.png ? png_create_info_struct(e.png) : nullptr;
  const bool encoded = e.info && encode_into(e, width, height, channels, samples);
  png_destroy_write_struct(&e.png, &e.info);
  if (!encoded)
    return Error{Reason::internal, "A picture of " + std::to_string(width) + "x" + std::to_string(height) +
                                       " cannot be encoded as PNG (" + e.errors.sentence + ")."};
  return std::move(e.bytes);
}

}  // namespace sparkle
