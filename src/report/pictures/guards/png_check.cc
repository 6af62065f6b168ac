#include "report/pictures/guards/png_check.h"

#include <array>
#include <cstdint>
#include <cstring>

namespace sparkle {

namespace {

constexpr std::array<unsigned char, 8> kSignature = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

bool is_png(std::span<const std::byte> bytes) {
  return bytes.size() >= kSignature.size() && std::memcmp(bytes.data(), kSignature.data(), kSignature.size()) == 0;
}

// A chunk: length (4 bytes, most significant first), type (4), data, check sum (4).
uint64_t length_at(std::span<const std::byte> bytes, size_t at) {
  uint64_t length = 0;
  for (size_t i = 0; i < 4; ++i) length = length << 8 | std::to_integer<uint64_t>(bytes[at + i]);
  return length;
}
bool has_type(std::span<const std::byte> bytes, size_t at, const char* type) {
  return std::memcmp(bytes.data() + at + 4, type, 4) == 0;
}

}  // namespace

bool png_chunks_fit(std::span<const std::byte> bytes) {
  if (!is_png(bytes)) return true;
  for (size_t at = kSignature.size(); at + 8 <= bytes.size();) {
    const uint64_t length = length_at(bytes, at);
    if (length > bytes.size() - at - 8) return false;
    if (has_type(bytes, at, "IEND")) return true;
    at += static_cast<size_t>(length) + 12;
  }
  return true;
}

std::optional<std::pair<int64_t, int64_t>> png_size(std::span<const std::byte> bytes) {
  if (!is_png(bytes) || bytes.size() < 24) return {};
  return std::pair(static_cast<int64_t>(length_at(bytes, 16)), static_cast<int64_t>(length_at(bytes, 20)));
}

std::span<const std::byte> png_for_decoder(std::span<const std::byte> bytes, std::vector<std::byte>& kept) {
  if (!is_png(bytes)) return bytes;
  constexpr size_t kWholePalette = 3 * 256;
  size_t begin = 0;  // of what is not yet kept
  const auto keep_to = [&](size_t end) {
    kept.insert(kept.end(), bytes.begin() + static_cast<std::ptrdiff_t>(begin),
                bytes.begin() + static_cast<std::ptrdiff_t>(end));
  };
  for (size_t at = kSignature.size(); at + 12 <= bytes.size() && !has_type(bytes, at, "IEND");) {
    const auto length = static_cast<size_t>(length_at(bytes, at));
    const size_t end = at + length + 12;
    if (end > bytes.size()) break;
    if (length == 0 && has_type(bytes, at, "IDAT")) {
      keep_to(at);
      begin = end;
    } else if (has_type(bytes, at, "PLTE") && length > 0 && length % 3 == 0 && length < kWholePalette) {
      keep_to(at);
      constexpr std::array<unsigned char, 8> kHead = {0, 0, kWholePalette / 256, kWholePalette % 256, 'P', 'L', 'T', 'E'};
      for (const unsigned char b : kHead) kept.push_back(std::byte{b});
      begin = at + 8;
      keep_to(at + 8 + length);
      kept.resize(kept.size() + kWholePalette - length);  // black
      begin = at + 8 + length;
    }
    at = end;
  }
  if (begin == 0) return bytes;
  keep_to(bytes.size());
  return kept;
}

}  // namespace sparkle
