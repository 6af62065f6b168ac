// The one door for files from outside: only regular files, no more of them than their kind ever needs, never a wait for a pipe
// that nobody fills or for a device without an end. Larger files are seen through it without copying (mapped_file.h).
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace sparkle {

// What a file should be, for sentences ("picture", "layer list"), and the most bytes that are taken.
struct FileKind {
  const char* what = "file";
  int64_t most_bytes = int64_t{64} << 20;
  bool pipes = false;  // what another program may hand over: `--layers <(grep conv all.csv)`
};

// All bytes of the file. Errors: file_unreadable naming what it is instead; size_overflow.
Result<std::string> read_file(const std::string& path, const FileKind& kind);

// Opened for reading; the caller closes it. Errors: file_unreadable.
Result<int> open_to_read(const std::string& path, const FileKind& kind);

// Like read_file for files of our own that may be missing or damaged: empty then.
std::string read_own_file(const std::string& path, int64_t most_bytes);

}  // namespace sparkle
