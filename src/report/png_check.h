// Guards the decoder of stb_image, which takes memory for a PNG chunk by the length that the file claims, and which copies
// pixel data of no bytes to nowhere.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace sparkle {

// False where a chunk of a PNG file claims more bytes than there are. True for files that are no PNG.
bool png_chunks_fit(std::span<const std::byte> bytes);

// A PNG file whose chunks fit, less its IDAT chunks of no bytes, which are allowed and say nothing: a copy in `kept` if it has
// any.
std::span<const std::byte> without_empty_data(std::span<const std::byte> bytes, std::vector<std::byte>& kept);

}  // namespace sparkle
