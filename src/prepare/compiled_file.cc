#include "prepare/compiled_file.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace sparkle {
namespace {

// A byte that text has not, the name, and line ends that careless copying would change.
constexpr std::array<unsigned char, 8> kMagic = {0x89, 'S', 'P', 'K', '\r', '\n', 0x1a, '\n'};
constexpr size_t kFormatAt = 8, kCountAt = 12, kBytesAt = 16, kVersionAt = 24, kVersionBytes = 24, kSectionsAt = 48;
constexpr size_t kHashAt = kSectionsAt + kCompiledSections * 24;
static_assert(kHashAt + 8 == kCompiledHeaderBytes);

template <class T>
void put(std::span<std::byte> to, size_t at, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) to[at + i] = static_cast<std::byte>(value >> (8 * i));
}
template <class T>
T get(std::span<const std::byte> from, size_t at) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) value |= static_cast<T>(from[at + i]) << (8 * i);
  return value;
}

Error damaged(const std::string& name, const std::string& what) {
  return {Reason::bad_format, "'" + name + "' " + what + "; compile the model again."};
}

}  // namespace

bool is_compiled(std::span<const std::byte> bytes) {
  return bytes.size() >= kMagic.size() && std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0;
}

std::array<std::byte, kCompiledHeaderBytes> compiled_header(const CompiledHeader& header) {
  std::array<std::byte, kCompiledHeaderBytes> bytes{};
  std::memcpy(bytes.data(), kMagic.data(), kMagic.size());
  put(bytes, kFormatAt, kCompiledFormat);
  put(bytes, kCountAt, static_cast<uint32_t>(kCompiledSections));
  put(bytes, kBytesAt, header.file_bytes);
  std::memcpy(bytes.data() + kVersionAt, header.version.data(), std::min(header.version.size(), kVersionBytes));
  for (size_t i = 0; i < kCompiledSections; ++i) {
    put(bytes, kSectionsAt + 24 * i, header.sections[i].at);
    put(bytes, kSectionsAt + 24 * i + 8, header.sections[i].bytes);
    put(bytes, kSectionsAt + 24 * i + 16, header.sections[i].hash);
  }
  put(bytes, kHashAt, hash_bytes(std::span(bytes).first(kHashAt)));
  return bytes;
}

Result<CompiledHeader> read_compiled_header(std::span<const std::byte> file, const std::string& name) {
  if (!is_compiled(file)) return Error{Reason::bad_format, "'" + name + "' is no compiled model."};
  if (file.size() < kCompiledHeaderBytes) return damaged(name, "is cut short inside its header");
  const auto bytes = file.first(kCompiledHeaderBytes);
  const auto format = get<uint32_t>(bytes, kFormatAt);
  if (format != kCompiledFormat)
    return damaged(name, "has the format " + std::to_string(format) + ", this version of Sparkle reads format " +
                             std::to_string(kCompiledFormat));
  if (get<uint64_t>(bytes, kHashAt) != hash_bytes(bytes.first(kHashAt)) || get<uint32_t>(bytes, kCountAt) != kCompiledSections)
    return damaged(name, "is damaged: its header is not what was written");
  CompiledHeader header;
  const auto* version = reinterpret_cast<const char*>(bytes.data() + kVersionAt);
  header.version.assign(version, strnlen(version, kVersionBytes));
  if (header.version != sparkle_version_text())
    return damaged(name, "was compiled by Sparkle " + header.version + ", this is " + std::string(sparkle_version_text()));
  header.file_bytes = get<uint64_t>(bytes, kBytesAt);
  if (header.file_bytes != file.size())
    return damaged(name, "is cut short or damaged: it should have " + std::to_string(header.file_bytes) + " bytes and has " +
                             std::to_string(file.size()));
  for (size_t i = 0; i < kCompiledSections; ++i) {
    SectionPlace& place = header.sections[i];
    place.at = get<uint64_t>(bytes, kSectionsAt + 24 * i);
    place.bytes = get<uint64_t>(bytes, kSectionsAt + 24 * i + 8);
    place.hash = get<uint64_t>(bytes, kSectionsAt + 24 * i + 16);
    if (place.at > file.size() || place.bytes > file.size() - place.at)
      return damaged(name, "is damaged: a section lies outside of the file");
    if (i == static_cast<size_t>(CompiledSection::weights)) continue;
    if (hash_bytes(file.subspan(place.at, place.bytes)) != place.hash)
      return damaged(name, "is damaged: a section is not what was written");
  }
  if (header[CompiledSection::weights].at % kCompiledAlignment != 0)
    return damaged(name, "is damaged: its weights are not aligned");
  return header;
}

std::string_view section_text(std::span<const std::byte> file, const CompiledHeader& header, CompiledSection section) {
  const SectionPlace& place = header[section];
  return {reinterpret_cast<const char*>(file.data()) + place.at, place.bytes};
}

uint64_t hash_bytes(std::span<const std::byte> bytes) {
  constexpr uint64_t kFactor = 0x9e3779b97f4a7c15ull;  // odd: the product loses nothing
  constexpr size_t kLanes = 8;
  uint64_t lanes[kLanes];
  for (size_t i = 0; i < kLanes; ++i) lanes[i] = kFactor * (i + 1);
  const std::byte* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= kLanes * 8; at += kLanes * 8, left -= kLanes * 8) {
    uint64_t words[kLanes];
    std::memcpy(words, at, sizeof words);
    for (size_t i = 0; i < kLanes; ++i) lanes[i] = std::rotl(lanes[i] ^ words[i], 29) * kFactor;
  }
  uint64_t hash = bytes.size();
  for (; left > 0; ++at, --left) hash = std::rotl(hash ^ static_cast<uint64_t>(*at), 29) * kFactor;
  for (const uint64_t lane : lanes) hash = std::rotl(hash ^ lane, 29) * kFactor;
  return hash;
}

std::string_view sparkle_version_text() { return SPARKLE_VERSION; }

}  // namespace sparkle
