// Guards the decoder of stb_image 2.27 (Debian 12), which writes past its table when a JPEG file declares more than 256 Huffman
// codes.
#pragma once

#include <cstddef>
#include <span>

namespace sparkle {

// The leading part of `bytes` in which no table is too long, whatever position the decoder reads one from; it ends with the
// picture. Empty where a table is too long. Files that are no JPEG come back whole.
std::span<const std::byte> checked_jpeg(std::span<const std::byte> bytes);

}  // namespace sparkle
