// Guards the decoder of stb_image, which takes memory for a PNG chunk by the length that the file claims, copies pixel data of
// no bytes to nowhere, and gives pixels whose colour is not in the palette whatever lay in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace sparkle {

// False where a chunk of a PNG file claims more bytes than there are. True for files that are no PNG.
bool png_chunks_fit(std::span<const std::byte> bytes);

// Width and height as a PNG file declares them; none for other files.
std::optional<std::pair<int64_t, int64_t>> png_size(std::span<const std::byte> bytes);

// A PNG file whose chunks fit as the decoder takes it: without IDAT chunks of no bytes, which are allowed and say nothing, and
// with a palette of 256 colours, black behind those of the file. A copy in `kept` where that changes anything.
std::span<const std::byte> png_for_decoder(std::span<const std::byte> bytes, std::vector<std::byte>& kept);

}  // namespace sparkle
