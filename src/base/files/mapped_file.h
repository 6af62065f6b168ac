// A file seen as bytes without copying it: a private, read-only memory map.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace sparkle {

class MappedFile {
 public:
  // Whether all pages are brought in at once, as for what is read from end to end, or each where it is touched.
  enum class Pages : uint8_t { all, touched };
  // Errors: file_unreadable, what it is where it is no regular file (base/files/read_file.h).
  static Result<MappedFile> open(const std::string& path, Pages pages = Pages::all);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  MappedFile() = default;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace sparkle
