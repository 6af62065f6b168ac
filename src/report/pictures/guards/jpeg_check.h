// Guards the decoder of stb_image 2.27 (Debian 12), which writes past its table when a JPEG file declares more than 256 Huffman
// codes, and decodes with whatever lay in memory when a scan names a table that the file does not define.
#pragma once

#include <cstddef>
#include <span>

namespace sparkle {

// The leading part of `bytes` in which no table is too long, whatever position the decoder reads one from; it ends with the
// picture. Empty where a table is too long or missing. Files that are no JPEG come back whole.
std::span<const std::byte> checked_jpeg(std::span<const std::byte> bytes);

}  // namespace sparkle
