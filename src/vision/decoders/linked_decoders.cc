// The decoders that this build has.
#include <string_view>

#include "vision/decoders/decoders.h"

namespace sparkle {
namespace {

#if defined(SPARKLE_NO_JPEG)
constexpr auto kJpeg = nullptr;
#else
constexpr auto kJpeg = decode_jpeg;
#endif
#if defined(SPARKLE_NO_PNG)
constexpr auto kPng = nullptr;
constexpr auto kEncodePng = nullptr;
#else
constexpr auto kPng = decode_png;
constexpr auto kEncodePng = encode_png;
#endif
#if defined(SPARKLE_NO_WEBP)
constexpr auto kWebp = nullptr;
#else
constexpr auto kWebp = decode_webp;
#endif
#if defined(SPARKLE_NO_TIFF)
constexpr auto kTiff = nullptr;
#else
constexpr auto kTiff = decode_tiff;
#endif

constexpr Decoders kDecoders = {{{{"JPEG", "libjpeg-turbo (Debian: libjpeg62-turbo-dev)", is_jpeg, kJpeg},
                                  {"PNG", "libpng (Debian: libpng-dev)", is_png, kPng},
                                  {"WebP", "libwebp (Debian: libwebp-dev)", is_webp, kWebp},
                                  {"TIFF", "libtiff (Debian: libtiff-dev)", is_tiff, kTiff}}},
                                kEncodePng};

bool starts(std::span<const std::byte> bytes, std::string_view with, size_t at = 0) {
  if (bytes.size() < at + with.size()) return false;
  return std::string_view(reinterpret_cast<const char*>(bytes.data()) + at, with.size()) == with;
}

}  // namespace

bool is_jpeg(std::span<const std::byte> bytes) { return starts(bytes, "\xff\xd8\xff"); }
bool is_png(std::span<const std::byte> bytes) { return starts(bytes, "\x89PNG\r\n\x1a\n"); }
bool is_webp(std::span<const std::byte> bytes) { return starts(bytes, "RIFF") && starts(bytes, "WEBP", 8); }
bool is_tiff(std::span<const std::byte> bytes) {
  for (const std::string_view magic :
       {std::string_view("II*\0", 4), std::string_view("MM\0*", 4), std::string_view("II+\0", 4), std::string_view("MM\0+", 4)})
    if (starts(bytes, magic)) return true;
  return false;
}

Result<const Decoders*> decoders() { return &kDecoders; }

}  // namespace sparkle
