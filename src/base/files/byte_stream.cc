#include "base/files/byte_stream.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace sparkle {

Result<std::unique_ptr<ByteStream>> ByteStream::open(const std::string& path, const std::string& what) {
  std::FILE* file = path == "-" ? stdin : std::fopen(path.c_str(), "rb");
  if (!file)
    return Error{Reason::file_unreadable, "The " + what + " '" + path + "' cannot be read: " + std::strerror(errno) + "."};
  return std::unique_ptr<ByteStream>(new ByteStream(file));
}

ByteStream::~ByteStream() {
  if (file_ != stdin) std::fclose(file_);
}

Result<std::string> read_standard_input(const std::string& what, int64_t most_bytes) {
  SPARKLE_TRY(stream, ByteStream::open("-", what));
  std::string bytes;
  const auto limit = static_cast<size_t>(most_bytes) + 1;
  size_t got = 0, n = 1;
  while (n > 0 && got < limit) {
    if (got == bytes.size()) bytes.resize(std::min(limit, std::max<size_t>(got * 2, 65536)));
    n = stream->read(bytes.data() + got, bytes.size() - got);
    got += n;
  }
  if (got == limit)
    return Error{Reason::size_overflow, "The " + what + " on standard input is larger than " + std::to_string(most_bytes) +
                                            " bytes, the most that is read of one."};
  if (got == 0)
    return Error{Reason::file_unreadable,
                 "There is no " + what + " on standard input; write it into the pipe, or name a file."};
  bytes.resize(got);
  return bytes;
}

}  // namespace sparkle
