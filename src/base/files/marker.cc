#include "base/files/marker.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>

namespace sparkle {
namespace {

namespace fs = std::filesystem;

bool has_name(int file) {
  struct stat there{};
  return ::fstat(file, &there) == 0 && there.st_nlink > 0;
}

std::string read_all(int file) {
  std::string text;
  char bytes[4096];
  for (ssize_t n = 0; (n = ::read(file, bytes, sizeof bytes)) > 0;) text.append(bytes, static_cast<size_t>(n));
  return text;
}

}  // namespace

Marker::Marker(const std::string& folder, const std::string& prefix, const std::string& line) {
  if (folder.empty()) return;
  std::error_code ignored;
  fs::create_directories(folder, ignored);
  static std::atomic<int> number{0};
  for (int attempt = 0; attempt < 1000 && file_ < 0; ++attempt) {
    path_ = folder + "/" + prefix + "_" + std::to_string(++number) + "_" + std::to_string(::getpid());
    file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file_ < 0 && errno == EEXIST) continue;  // of a process that had our number
    if (file_ < 0) return;
    // Whoever looked in between has taken it for an orphan.
    if (::flock(file_, LOCK_EX) == 0 && has_name(file_)) break;
    ::close(file_);
    file_ = -1;
  }
  const std::string text = line + "\n";
  if (file_ >= 0 && ::write(file_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) ::ftruncate(file_, 0);
}

Marker::~Marker() {
  if (file_ < 0) return;
  ::unlink(path_.c_str());  // before the lock goes
  ::close(file_);
}

std::vector<std::string> orphaned_markers(const std::string& folder, const std::string& prefix) {
  std::vector<std::string> lines;
  std::error_code ignored;
  for (fs::directory_iterator at(folder, ignored), end; !ignored && at != end; at.increment(ignored)) {
    if (!at->path().filename().string().starts_with(prefix + "_")) continue;
    if (std::error_code unknown; !at->is_regular_file(unknown)) continue;
    const int file = ::open(at->path().c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) continue;
    // Two may find it at once: it is the one's who has removed it.
    if (::flock(file, LOCK_EX | LOCK_NB) == 0 && has_name(file)) {
      const std::string text = read_all(file);
      if (::unlink(at->path().c_str()) == 0 && text.ends_with('\n')) lines.push_back(text.substr(0, text.size() - 1));
    }
    ::close(file);
  }
  return lines;
}

}  // namespace sparkle
