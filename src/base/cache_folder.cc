#include "base/cache_folder.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace sparkle {
namespace {

namespace fs = std::filesystem;

// Files PATH.PROCESS.NUMBER of processes that are gone.
void remove_leftovers(const fs::path& path) {
  std::error_code ignored;
  const fs::path folder = path.parent_path();
  const std::string prefix = path.filename().string() + ".";
  for (fs::directory_iterator at(folder.empty() ? "." : folder, ignored), end; !ignored && at != end; at.increment(ignored)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with(prefix)) continue;
    const std::string rest = name.substr(prefix.size());
    const size_t dot = rest.find('.');
    if (dot == 0 || dot == std::string::npos || dot + 1 == rest.size() ||
        rest.find_first_not_of("0123456789.") != std::string::npos)
      continue;
    std::error_code why;
    if (process_ended(std::strtol(rest.c_str(), nullptr, 10))) fs::remove(at->path(), why);
  }
}

}  // namespace

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
  static std::atomic<int> calls{0};
  remove_leftovers(path);
  const std::string aside = path + "." + std::to_string(::getpid()) + "." + std::to_string(++calls);
  std::error_code error;
  std::ofstream file(aside, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (file) fs::rename(aside, path, error);
  if (file && !error) return true;
  fs::remove(aside, error);
  return false;
}

void append_line(const std::string& path, const std::string& line) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0) return;
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
