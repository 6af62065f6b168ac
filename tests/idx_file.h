// MNIST's files: bytes behind a header, compressed.
#pragma once

#include <zlib.h>

#include <filesystem>
#include <vector>

namespace sparkle::testing {

// The bytes behind the header; none where the file holds fewer.
inline std::vector<unsigned char> read_idx(const std::filesystem::path& path, size_t header, size_t bytes) {
  std::vector<unsigned char> all(header + bytes);
  gzFile file = gzopen(path.c_str(), "rb");
  const int got = file ? gzread(file, all.data(), static_cast<unsigned>(all.size())) : -1;
  if (file) gzclose(file);
  if (got != static_cast<int>(all.size())) return {};
  return {all.begin() + static_cast<long>(header), all.end()};
}

}  // namespace sparkle::testing
