#include "report/png_check.h"

#include <array>
#include <cstdint>
#include <cstring>

namespace sparkle {

bool png_chunks_fit(std::span<const std::byte> bytes) {
  constexpr std::array<unsigned char, 8> kSignature = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  if (bytes.size() < kSignature.size() || std::memcmp(bytes.data(), kSignature.data(), kSignature.size()) != 0) return true;
  // A chunk: length (4 bytes, most significant first), type (4), data, check sum (4).
  for (size_t at = kSignature.size(); at + 8 <= bytes.size();) {
    uint64_t length = 0;
    for (size_t i = 0; i < 4; ++i) length = length << 8 | std::to_integer<uint64_t>(bytes[at + i]);
    if (length > bytes.size() - at - 8) return false;
    if (std::memcmp(bytes.data() + at + 4, "IEND", 4) == 0) return true;
    at += static_cast<size_t>(length) + 12;
  }
  return true;
}

}  // namespace sparkle
