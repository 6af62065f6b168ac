// Guards the decoder of stb_image, which takes memory for a PNG chunk by the length that the file claims.
#pragma once

#include <cstddef>
#include <span>

namespace sparkle {

// False where a chunk of a PNG file claims more bytes than there are. True for files that are no PNG.
bool png_chunks_fit(std::span<const std::byte> bytes);

}  // namespace sparkle
