#include "base/files/byte_stream.h"

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

}  // namespace sparkle
