// Guards the decoder of stb_image, which takes the pixels that a BMP file does not hold for black, and tells the height of one
// whose rows go top down as a negative number.
#pragma once

#include <vector>

#include "report/pictures/picture.h"

namespace sparkle {

bool is_bmp(std::span<const std::byte> bytes);

// The size that the file declares, where it holds so many pixels. Errors: bad_format.
Result<std::pair<int64_t, int64_t>> checked_bmp(std::span<const std::byte> bytes, const std::string& file);

// Of a checked file with a palette: with black for the colours that it lacks, where the decoder reads memory that nobody wrote.
std::span<const std::byte> bmp_for_decoder(std::span<const std::byte> bytes, std::vector<std::byte>& kept);

}  // namespace sparkle
