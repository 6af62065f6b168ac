// BMP files without compression, 1 to 32 bits a pixel, rows either way. No library of Debian's reads them alone.
#pragma once

#include "vision/pictures/picture.h"

namespace sparkle {

bool is_bmp(std::span<const std::byte> bytes);

// Errors: bad_format naming what is wrong, size_overflow.
Result<Picture> read_bmp(std::span<const std::byte> bytes, const std::string& file, int64_t max_pixels);

}  // namespace sparkle
