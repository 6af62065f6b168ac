#include "backends/cuda/nvrtc/program_headers.h"

#include "base/record.h"

namespace sparkle::cuda {
namespace {

constexpr ProgramHeader kHeaders[] = {
#include "program_headers.inc"
};

}  // namespace

std::span<const ProgramHeader> program_headers() { return kHeaders; }

uint64_t program_headers_hash() {
  uint64_t hash = 0;
  for (const ProgramHeader& header : kHeaders) hash = hash * 31 + hash_text(header.name) * 17 + hash_text(header.text);
  return hash;
}

}  // namespace sparkle::cuda
