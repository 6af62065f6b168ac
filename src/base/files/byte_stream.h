// ByteStream: bytes of a pipe or file one behind the other, of which nobody knows how many there are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "base/result.h"

namespace sparkle {

class ByteStream {
 public:
  // "-": standard input. Errors: file_unreadable, naming `what`.
  static Result<std::unique_ptr<ByteStream>> open(const std::string& path, const std::string& what);
  ~ByteStream();
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;
  // Waits for so many bytes; fewer come where the stream ends.
  size_t read(void* to, size_t bytes) { return std::fread(to, 1, bytes, file_); }

 private:
  explicit ByteStream(std::FILE* file) : file_(file) {}
  std::FILE* file_;
};

// All of standard input. Errors: size_overflow beyond `most_bytes`, file_unreadable where there is nothing; they name `what`.
Result<std::string> read_standard_input(const std::string& what, int64_t most_bytes);

}  // namespace sparkle
