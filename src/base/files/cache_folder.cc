#include "base/files/cache_folder.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <span>

#include "base/files/new_file.h"

namespace sparkle {
std::string cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') return std::string(cache) + "/sparkle";
  const char* home = std::getenv("HOME");
  return home != nullptr && home[0] == '/' ? std::string(home) + "/.cache/sparkle" : std::string();
}

bool process_ended(long process) {
  if (process <= 0 || process == ::getpid()) return false;
  if (::kill(static_cast<pid_t>(process), 0) != 0) return errno == ESRCH;
  // "12 (name) Z ...": over, but nobody has asked for its status yet.
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string stat;
  std::getline(file, stat);
  const size_t name = stat.rfind(')');
  return name != std::string::npos && name + 2 < stat.size() && (stat[name + 2] == 'Z' || stat[name + 2] == 'X');
}

bool replace_file(const std::string& path, std::string_view bytes) {
  return write_file(path, std::as_bytes(std::span(bytes))).ok();
}

void append_line(const std::string& path, const std::string& line) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);
  if (file < 0) return;
  if (struct stat status{}; ::fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(file);
    return;
  }
  ::flock(file, LOCK_EX);  // until it is closed
  const off_t all = std::max<off_t>(0, ::lseek(file, 0, SEEK_END));
  off_t size = all;
  const auto ends_line = [&](off_t at) {
    char last = 0;
    return ::pread(file, &last, 1, at - 1) == 1 && last == '\n';
  };
  while (size > 0 && !ends_line(size)) --size;
  const std::string text = line + "\n";
  if ((size == all || ::ftruncate(file, size) == 0) && ::write(file, text.data(), text.size()) < 0) ::ftruncate(file, size);
  ::close(file);
}

}  // namespace sparkle
