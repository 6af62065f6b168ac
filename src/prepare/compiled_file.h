// The file that `sparkle compile` writes: a header, the weights as kernels packed them, and sections of text that say what they
// are. Here is its form alone: where the sections lie and that they are whole; compiled_model.h knows what they mean.
//
//   header    magic, format, version of Sparkle, size of the file, place and hash of each section, hash of the header itself
//   weights   from byte 4096: packed constants, each at a multiple of 64, in the order of the plan; a line behind the last one
//   sections  options, device, host, tuning, graph, constants, plan: text
//
// Numbers are little-endian. The hash of each packed constant stands in the section `constants`: they are not looked at when a
// file is opened, since reading all weights would take as long as packing some of them (docs/decisions/0010).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sparkle {

inline constexpr uint32_t kCompiledFormat = 4;
inline constexpr size_t kCompiledHeaderBytes = 248;
inline constexpr int64_t kCompiledWeightsAt = 4096;  // a page: where the map of the file begins, so do the weights
inline constexpr int64_t kCompiledAlignment = 64;    // of each constant

// What a constant takes among the weights: up to the next one's place, a cache line of zeros between them.
constexpr int64_t compiled_extent(int64_t bytes) {
  return (bytes + kCompiledAlignment - 1) / kCompiledAlignment * kCompiledAlignment + kCompiledAlignment;
}

enum class CompiledSection : uint8_t { weights, options, device, host, tuning, graph, constants, plan };
inline constexpr size_t kCompiledSections = 8;

struct SectionPlace {
  uint64_t at = 0, bytes = 0;
  uint64_t hash = 0;  // of the bytes; 0 for the weights
};

struct CompiledHeader {
  std::string version;  // of Sparkle
  uint64_t file_bytes = 0;
  std::array<SectionPlace, kCompiledSections> sections;

  SectionPlace& operator[](CompiledSection s) { return sections[static_cast<size_t>(s)]; }
  const SectionPlace& operator[](CompiledSection s) const { return sections[static_cast<size_t>(s)]; }
};

// True where the bytes begin as such a file does.
bool is_compiled(std::span<const std::byte> bytes);

std::array<std::byte, kCompiledHeaderBytes> compiled_header(const CompiledHeader& header);

// The header of a whole file whose sections lie inside it and hold what was written, the weights' bytes unread. `name`: what
// errors call the file. Errors: bad_format.
Result<CompiledHeader> read_compiled_header(std::span<const std::byte> file, const std::string& name);

std::string_view section_text(std::span<const std::byte> file, const CompiledHeader& header, CompiledSection section);

// Eight products in flight: as fast as memory gives the bytes. Any change of one bit changes it.
uint64_t hash_bytes(std::span<const std::byte> bytes);

// The version of this library, which is that of the files it reads.
std::string_view sparkle_version_text();

}  // namespace sparkle
