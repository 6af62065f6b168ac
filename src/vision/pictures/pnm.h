// Binary PNM files (P5 grey, P6 RGB; netpbm.sourceforge.net/doc): a header of text, then samples of one byte, or of two with
// the higher first where the largest value needs them.
#pragma once

#include <optional>

#include "vision/pictures/picture.h"

namespace sparkle {

bool is_pnm(std::span<const std::byte> bytes);

// Errors: bad_format naming what is wrong, size_overflow.
Result<Picture> read_pnm(std::span<const std::byte> bytes, const std::string& file, int64_t max_pixels);

}  // namespace sparkle
