#include "base/files/read_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace sparkle {
namespace {

constexpr int kMostSilence = 30'000;  // milliseconds that a pipe may keep still

Error unreadable(const std::string& path, const FileKind& kind, const std::string& why) {
  const std::string name = "'" + path + "' cannot be read: " + why + ".";
  return {Reason::file_unreadable, std::string_view(kind.what) == "file" ? name : "The " + std::string(kind.what) + " " + name};
}

const char* not_regular(mode_t mode, const FileKind& kind) {
  if (S_ISREG(mode) || (kind.pipes && S_ISFIFO(mode))) return nullptr;
  if (S_ISDIR(mode)) return "it is a folder, not a regular file";
  if (S_ISFIFO(mode)) return "it is a pipe, not a regular file";
  if (S_ISSOCK(mode)) return "it is a socket, not a regular file";
  return "it is a device, not a regular file";
}

std::string size_text(int64_t bytes) {
  constexpr const char* kUnits[] = {" bytes", " KiB", " MiB", " GiB"};
  int unit = 0;
  for (; bytes % 1024 == 0 && unit < 3; ++unit) bytes /= 1024;
  return std::to_string(bytes) + kUnits[unit];
}

// More bytes, 0 at the end, or -1 with errno; ETIMEDOUT where a pipe keeps still.
ssize_t read_some(int file, char* to, size_t most) {
  for (;;) {
    const ssize_t n = ::read(file, to, most);
    if (n >= 0) return n;
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return -1;
    pollfd waited{file, POLLIN, 0};
    if (::poll(&waited, 1, kMostSilence) == 0) return errno = ETIMEDOUT, -1;
  }
}

}  // namespace

Result<int> open_to_read(const std::string& path, const FileKind& kind) {
  // C's functions would take the name up to there for the whole.
  if (path.find('\0') != std::string::npos) return unreadable(path, kind, "its name holds a byte of value 0");
  // Looked at before it is opened, because to open some devices is to set them going, and without O_NONBLOCK a pipe that takes
  // the name meanwhile would be waited for.
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return unreadable(path, kind, std::strerror(errno));
  if (const char* why = not_regular(status.st_mode, kind)) return unreadable(path, kind, why);
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0) return unreadable(path, kind, std::strerror(errno));
  if (::fstat(file, &status) == 0 && !not_regular(status.st_mode, kind)) return file;
  ::close(file);
  return unreadable(path, kind, "it was replaced meanwhile by something that is not a regular file");
}

Result<std::string> read_file(const std::string& path, const FileKind& kind) {
  SPARKLE_TRY(file, open_to_read(path, kind));
  struct stat status{};
  const bool pipe = ::fstat(file, &status) == 0 && S_ISFIFO(status.st_mode);
  std::string bytes;
  size_t got = 0;
  ssize_t n = 1;
  // Up to one byte beyond the limit, whatever size the file claims; room for all of it at once where that is within the limit.
  const auto limit = static_cast<size_t>(kind.most_bytes) + 1;
  while (n > 0 && got < limit) {
    const size_t claimed = status.st_size > 0 ? static_cast<size_t>(status.st_size) + 1 : 0;
    if (got == bytes.size()) bytes.resize(std::min(limit, std::max({got * 2, claimed, size_t{4096}})));
    n = read_some(file, bytes.data() + got, bytes.size() - got);
    if (n > 0) got += static_cast<size_t>(n);
  }
  const int error = n < 0 ? errno : 0;
  ::close(file);
  if (error == ETIMEDOUT) return unreadable(path, kind, "nothing has come through this pipe for 30 seconds");
  if (error != 0) return unreadable(path, kind, std::strerror(error));
  if (got == limit)
    return Error{Reason::size_overflow, "The " + std::string(kind.what) + " '" + path + "' is larger than " +
                                            size_text(kind.most_bytes) + ", the most that is read of one."};
  if (pipe && got == 0) return unreadable(path, kind, "nothing is written into this pipe");
  bytes.resize(got);
  return bytes;
}

std::string read_own_file(const std::string& path, int64_t most_bytes) {
  auto bytes = read_file(path, {"file", most_bytes});
  return bytes.ok() ? std::move(*bytes) : std::string();
}

}  // namespace sparkle
