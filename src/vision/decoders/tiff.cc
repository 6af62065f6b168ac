// TIFF by libtiff, the first picture of a file: grey and colour of 16 bits as they are, everything else as libtiff's RGBA.
#include <tiffio.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "vision/decoders/decoders.h"
#include "vision/decoders/upright.h"
#include "vision/pictures/picture_size.h"

namespace sparkle {
namespace {

struct TiffSource {
  std::span<const std::byte> bytes;
  uint64_t at = 0;
  char sentence[160] = {};
};

tmsize_t read_tiff(thandle_t handle, void* to, tmsize_t bytes) {
  auto* s = static_cast<TiffSource*>(handle);
  if (s->at >= s->bytes.size() || bytes <= 0) return 0;
  const auto n = std::min<uint64_t>(static_cast<uint64_t>(bytes), s->bytes.size() - s->at);
  std::memcpy(to, s->bytes.data() + s->at, n);
  s->at += n;
  return static_cast<tmsize_t>(n);
}

toff_t seek_tiff(thandle_t handle, toff_t offset, int whence) {
  auto* s = static_cast<TiffSource*>(handle);
  s->at = offset + (whence == SEEK_SET ? 0 : whence == SEEK_CUR ? s->at : s->bytes.size());
  return s->at;
}

int keep_tiff_error(TIFF*, void* user, const char*, const char* format, va_list arguments) {
  auto* s = static_cast<TiffSource*>(user);
  if (s->sentence[0] == '\0') std::vsnprintf(s->sentence, sizeof s->sentence, format, arguments);
  return 1;
}

struct OpenTiff {
  OpenTiff(TiffSource& source, tmsize_t most) {
    TIFFOpenOptions* options = TIFFOpenOptionsAlloc();
    TIFFOpenOptionsSetMaxSingleMemAlloc(options, most);
    TIFFOpenOptionsSetErrorHandlerExtR(options, keep_tiff_error, &source);
    TIFFOpenOptionsSetWarningHandlerExtR(options, [](TIFF*, void*, const char*, const char*, va_list) { return 1; }, nullptr);
    tiff = TIFFClientOpenExt(
        "picture", "rm", &source, read_tiff, [](thandle_t, void*, tmsize_t) -> tmsize_t { return 0; }, seek_tiff,
        [](thandle_t) { return 0; }, [](thandle_t h) -> toff_t { return static_cast<TiffSource*>(h)->bytes.size(); },
        [](thandle_t, void**, toff_t*) { return 0; }, [](thandle_t, void*, toff_t) {}, options);
    TIFFOpenOptionsFree(options);
  }
  ~OpenTiff() {
    if (tiff) TIFFClose(tiff);
  }
  OpenTiff(const OpenTiff&) = delete;
  OpenTiff& operator=(const OpenTiff&) = delete;
  TIFF* tiff = nullptr;
};

struct TiffKind {
  uint32_t width = 0, height = 0;
  uint16_t bits = 1, samples = 1, format = SAMPLEFORMAT_UINT, photometric = 0, planar = PLANARCONFIG_CONTIG, orientation = 1;
};

TiffKind kind_of(TIFF* tiff) {
  TiffKind k;
  TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &k.width);
  TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &k.height);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_BITSPERSAMPLE, &k.bits);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLESPERPIXEL, &k.samples);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLEFORMAT, &k.format);
  TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &k.photometric);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_PLANARCONFIG, &k.planar);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_ORIENTATION, &k.orientation);
  return k;
}

bool plain_16_bits(TIFF* tiff, const TiffKind& k) {
  const bool colors = k.photometric == PHOTOMETRIC_MINISBLACK || k.photometric == PHOTOMETRIC_RGB;
  return k.bits == 16 && k.format == SAMPLEFORMAT_UINT && k.planar == PLANARCONFIG_CONTIG && colors && k.samples >= 1 &&
         k.samples <= 4 && !TIFFIsTiled(tiff) &&
         TIFFScanlineSize(tiff) == static_cast<tmsize_t>(k.width) * k.samples * static_cast<tmsize_t>(sizeof(uint16_t));
}

// libtiff's colours come multiplied by alpha, and a Picture is composited over white by its alpha: given back.
std::shared_ptr<const void> unmultiplied(const std::shared_ptr<uint32_t[]>& raster, size_t pixels) {
  auto* bytes = reinterpret_cast<uint8_t*>(raster.get());
  for (size_t i = 0; i < pixels; ++i) {
    const uint32_t v = raster[i], alpha = TIFFGetA(v);
    const uint32_t rgb[3] = {TIFFGetR(v), TIFFGetG(v), TIFFGetB(v)};
    for (size_t c = 0; c < 3; ++c)
      bytes[4 * i + c] = static_cast<uint8_t>(alpha == 0 ? 0 : std::min(255u, (rgb[c] * 255 + alpha / 2) / alpha));
    bytes[4 * i + 3] = static_cast<uint8_t>(alpha);
  }
  return {raster, raster.get()};
}

}  // namespace

Result<Picture> decode_tiff(const PictureFile& file) {
  TiffSource source{file.bytes};
  // Of the largest picture that is read, 8 bytes a pixel; and what a file holds itself.
  const OpenTiff opened(source,
                        static_cast<tmsize_t>(file.max_pixels) * 8 + static_cast<tmsize_t>(file.bytes.size()) + (1 << 20));
  const auto refused = [&] {
    return Error{Reason::bad_format, "'" + file.name + "' is a damaged TIFF file, or of a kind that is not read (" +
                                         std::string(source.sentence) + "); save it as PNG."};
  };
  if (!opened.tiff) return refused();
  const TiffKind k = kind_of(opened.tiff);
  if (k.width == 0 || k.height == 0) return refused();
  SPARKLE_CHECK(check_picture_size(k.width, k.height, file.name, file.max_pixels));
  Picture picture;
  picture.width = static_cast<int>(k.width), picture.height = static_cast<int>(k.height);
  const size_t pixels = static_cast<size_t>(k.width) * k.height;
  if (plain_16_bits(opened.tiff, k)) {
    picture.stored = k.samples, picture.wide = true, picture.white = 65535;
    const std::shared_ptr<uint16_t[]> samples(new uint16_t[pixels * k.samples]());
    for (uint32_t y = 0; y < k.height; ++y)
      if (TIFFReadScanline(opened.tiff, samples.get() + static_cast<size_t>(y) * k.width * k.samples, y) != 1) return refused();
    picture.samples = {samples, samples.get()};
    return turned_upright(std::move(picture), k.orientation);
  }
  char why[1024] = {};
  if (!TIFFRGBAImageOK(opened.tiff, why)) {
    if (source.sentence[0] == '\0') std::snprintf(source.sentence, sizeof source.sentence, "%.150s", why);
    return refused();
  }
  const std::shared_ptr<uint32_t[]> raster(new uint32_t[pixels]());
  // Rows as they are stored: libtiff would turn some orientations and not others.
  TIFFSetField(opened.tiff, TIFFTAG_ORIENTATION, ORIENTATION_TOPLEFT);
  if (TIFFReadRGBAImageOriented(opened.tiff, k.width, k.height, raster.get(), ORIENTATION_TOPLEFT, 1) != 1) return refused();
  picture.stored = 4;
  picture.samples = unmultiplied(raster, pixels);
  return turned_upright(std::move(picture), k.orientation);
}

}  // namespace sparkle
