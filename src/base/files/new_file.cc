#include "base/files/new_file.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>
#include <vector>

#include "base/files/cache_folder.h"

namespace sparkle {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLongestName = 255, kNumbers = 48;  // of a file name; kAside and "PROCESS.CALL" behind it
// No other program names files so: what is left of a process that ended is told by it.
constexpr char kAside[] = ".sparkle-part.";

// PATH for the files aside, its name cut where the numbers would have no room.
std::string stem_of(const fs::path& path) {
  std::string name = path.filename().string();
  name.resize(std::min(name.size(), kLongestName - kNumbers));
  return (path.parent_path() / name).string();
}

// The descriptor of this process that a path names: -1 where it names none.
int named_descriptor(const std::string& path) {
  if (path == "/dev/stdout") return 1;
  if (path == "/dev/stderr") return 2;
  for (const std::string folder : {"/dev/fd/", "/proc/self/fd/"}) {
    const std::string number = path.starts_with(folder) ? path.substr(folder.size()) : "";
    if (!number.empty() && number.size() < 8 && number.find_first_not_of("0123456789") == std::string::npos)
      return std::atoi(number.c_str());
  }
  return -1;
}

// Where a name leads, link by link, to a file that may not be there yet; a descriptor of this process ends it.
std::string followed(std::string path) {
  for (int links = 0; links < 40 && named_descriptor(path) < 0; ++links) {  // the system's own limit
    std::error_code error;
    const fs::path target = fs::read_symlink(path, error);
    if (error) break;
    path = (target.is_absolute() ? target : fs::path(path).parent_path() / target).string();
  }
  return path;
}

bool same_file(const struct stat& a, const std::string& path) {
  struct stat b{};
  return ::stat(path.c_str(), &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// The name cannot be given to another file, which says nothing about the file: its folder is closed (EACCES, EPERM, EROFS), it
// is a mount of its own (EBUSY, EXDEV), or in a folder like /tmp it is somebody else's (EPERM).
bool keeps_its_name(int error) {
  return error == EACCES || error == EPERM || error == EROFS || error == EBUSY || error == EXDEV;
}

// Owner, group and permissions of the file that is replaced. What its owner or group alone may do is not handed to others.
void take_over(int file, const struct stat& old) {
  mode_t mode = old.st_mode & 07777;
  const bool group = ::fchown(file, static_cast<uid_t>(-1), old.st_gid) == 0;
  if (!group) mode = (mode & ~070u) | (mode & ((mode & 07) << 3));
  const bool owner = ::fchown(file, old.st_uid, static_cast<gid_t>(-1)) == 0;
  if (!group || !owner) mode &= ~(static_cast<mode_t>(S_ISUID) | S_ISGID);
  (void)!::fchmod(file, mode);
}

// Files PATH.sparkle-part.PROCESS.CALL of processes that are gone.
void remove_leftovers(const fs::path& stem) {
  std::error_code ignored;
  const fs::path folder = stem.parent_path();
  const std::string prefix = stem.filename().string() + kAside;
  for (fs::directory_iterator at(folder.empty() ? "." : folder, ignored), end; !ignored && at != end; at.increment(ignored)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with(prefix)) continue;
    const std::string rest = name.substr(prefix.size());
    const size_t dot = rest.find('.');
    if (dot == 0 || dot == std::string::npos || dot + 1 == rest.size() || rest.find('.', dot + 1) != std::string::npos ||
        rest.find_first_not_of("0123456789.") != std::string::npos)
      continue;
    std::error_code why;
    if (process_ended(std::strtol(rest.c_str(), nullptr, 10))) fs::remove(at->path(), why);
  }
}

// A limit on the size of files (ulimit -f) ends a process by this signal unless it is held back; then writing fails like any
// other. Only for this thread, whose the signal is: the program around the library may want it.
class SizeSignalHeld {
 public:
  SizeSignalHeld() {
    sigemptyset(&size_);
    sigaddset(&size_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &size_, &before_);
  }
  ~SizeSignalHeld() {
    const timespec at_once{};
    const int error = errno;
    if (sigismember(&before_, SIGXFSZ) == 0)
      while (sigtimedwait(&size_, nullptr, &at_once) < 0 && errno == EINTR) {
      }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }

 private:
  sigset_t size_, before_;
};

}  // namespace

Error NewFile::failed(int error) const {
  return {Reason::file_unwritable, "'" + given_ + "' could not be written in full: " + std::strerror(error) + "."};
}

Result<NewFile> NewFile::create(const std::string& path) {
  const auto refused = [&](const std::string& why) {
    return Error{Reason::file_unwritable, "'" + path + "' cannot be written: " + why + "."};
  };
  if (path.find('\0') != std::string::npos) return refused("its name holds a byte of value 0");
  NewFile file;
  file.given_ = path;
  file.path_ = followed(path);
  if (const int descriptor = named_descriptor(file.path_); descriptor >= 0) {
    file.file_ = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
    if (file.file_ < 0) return refused(std::strerror(errno));
    return file;
  }
  if (struct stat status{}; ::stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) return refused("it is a folder");
    if (!S_ISREG(status.st_mode)) {  // without O_NONBLOCK a pipe that nobody reads would be waited for
      file.file_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
      if (file.file_ < 0) return refused(std::strerror(errno));
      ::fcntl(file.file_, F_SETFL, ::fcntl(file.file_, F_GETFL) & ~O_NONBLOCK);
      return file;
    }
    if (::access(path.c_str(), W_OK) != 0) return refused(std::strerror(errno));
    file.old_ = status;
  } else if (errno != ENOENT || fs::path(file.path_).filename().empty()) {
    return refused(std::strerror(errno));
  }
  int error = EXDEV;  // a file of no name, which another process has open, has no folder
  if (!file.old_ || same_file(*file.old_, file.path_)) {
    static std::atomic<unsigned> calls{0};
    const std::string stem = stem_of(file.path_);
    const mode_t mode = file.old_ ? 0600 : 0666;  // until it has the old one's group, which may be its only readers
    remove_leftovers(stem);
    error = EEXIST;
    for (int attempt = 0; attempt < 1000 && file.file_ < 0 && error == EEXIST; ++attempt) {
      file.aside_ = stem + kAside + std::to_string(::getpid()) + "." + std::to_string(++calls);
      file.file_ = ::open(file.aside_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
      error = errno;
    }
    if (file.file_ >= 0) return file;
    file.aside_.clear();
  } else {
    file.path_ = path;
  }
  if (file.old_ && keeps_its_name(error)) {
    file.file_ = ::memfd_create("sparkle-part", MFD_CLOEXEC);
    if (file.file_ >= 0) return file;
  }
  return refused(std::string(std::strerror(error)) + " (a new file is made in its folder first)");
}

NewFile::NewFile(NewFile&& other) noexcept
    : given_(std::move(other.given_)),
      path_(std::move(other.path_)),
      aside_(std::exchange(other.aside_, {})),
      file_(std::exchange(other.file_, -1)),
      size_(other.size_),
      old_(other.old_) {}

NewFile::~NewFile() {
  if (file_ >= 0) ::close(file_);
  if (!aside_.empty()) ::unlink(aside_.c_str());
}

Status NewFile::put(std::span<const std::byte> bytes, int64_t at) {
  const SizeSignalHeld held;
  while (!bytes.empty()) {
    const ssize_t n = at < 0 ? ::write(file_, bytes.data(), bytes.size()) : ::pwrite(file_, bytes.data(), bytes.size(), at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed(errno);
    bytes = bytes.subspan(static_cast<size_t>(n));
    if (at >= 0) at += n;
  }
  return ok();
}

Status NewFile::write(std::span<const std::byte> bytes) {
  SPARKLE_CHECK(put(bytes, -1));
  size_ += static_cast<int64_t>(bytes.size());
  return ok();
}

Status NewFile::write_at(int64_t at, std::span<const std::byte> bytes) { return put(bytes, at); }

// Over a file that keeps its name, once all is there: what can end halfway is this copy alone, and neither a full disk nor a
// limit on files ends it, for the room is asked for before the first byte of the old file goes.
Status NewFile::copy_over(Durable durable) {
  const int from = std::exchange(file_, ::open(path_.c_str(), O_WRONLY | O_CLOEXEC));
  const auto copied = [&]() -> Status {
    if (file_ < 0) return failed(errno);
    {
      const SizeSignalHeld held;
      struct stat old{};
      if (::fstat(file_, &old) != 0) return failed(errno);
      const int error = size_ <= old.st_size ? 0 : ::posix_fallocate(file_, 0, size_);
      if (error == ENOSPC || error == EFBIG || error == EDQUOT) {
        (void)!::ftruncate(file_, old.st_size);
        return failed(error);
      }
    }
    std::vector<std::byte> bytes(static_cast<size_t>(std::min<int64_t>(size_, 1 << 20)));
    for (int64_t at = 0; at < size_;) {
      const ssize_t n = ::pread(from, bytes.data(), bytes.size(), at);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return failed(n < 0 ? errno : EIO);
      SPARKLE_CHECK(put(std::span(bytes).first(static_cast<size_t>(n)), at));
      at += n;
    }
    if (::ftruncate(file_, size_) != 0 || (durable == Durable::yes && ::fsync(file_) != 0)) return failed(errno);
    return ::close(std::exchange(file_, -1)) == 0 ? ok() : failed(errno);
  };
  Status status = copied();
  ::close(from);
  return status;
}

Status NewFile::finish(Durable durable) {
  if (aside_.empty() && old_) return copy_over(durable);
  if (aside_.empty()) return ::close(std::exchange(file_, -1)) == 0 ? ok() : failed(errno);
  if (old_) take_over(file_, *old_);
  if (durable == Durable::yes && ::fsync(file_) != 0) return failed(errno);
  // Some file systems say at a close alone that they could not keep what was written; the file is needed once more if it must
  // be copied.
  if (const int other = ::fcntl(file_, F_DUPFD_CLOEXEC, 3); other < 0 || ::close(other) != 0) return failed(errno);
  if (::rename(aside_.c_str(), path_.c_str()) != 0) {
    if (!old_ || !keeps_its_name(errno)) return failed(errno);
    SPARKLE_CHECK(copy_over(durable));
    ::unlink(std::exchange(aside_, {}).c_str());
    return ok();
  }
  aside_.clear();
  ::close(std::exchange(file_, -1));
  return ok();
}

Status write_file(const std::string& path, std::span<const std::byte> bytes, Durable durable) {
  SPARKLE_TRY(file, NewFile::create(path));
  SPARKLE_CHECK(file.write(bytes));
  return file.finish(durable);
}

Status check_writable(const std::string& path) {
  auto file = NewFile::create(path);
  if (!file.ok()) return file.take_error();
  return ok();
}

Status check_apart(const std::string& output, const std::string& input) {
  std::error_code none;  // a file that is not there is another one
  if (!fs::equivalent(output, input, none)) return ok();
  return Error{Reason::bad_usage, "The output '" + output + "' is the model that is read; name another file to write."};
}

FolderLock::FolderLock(const std::string& path_of_file) {
  std::error_code error;
  const fs::path file = followed(path_of_file), whole = fs::weakly_canonical(file, error);
  const fs::path folder = (error ? file : whole).parent_path();
  folder_ = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (folder_ >= 0 && !held_) {
    held_ = ::flock(folder_, LOCK_EX | LOCK_NB) == 0;
    taken_ = !held_ && (errno == EWOULDBLOCK || errno == EINTR);
    if (!taken_ || std::chrono::steady_clock::now() > until) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

FolderLock::~FolderLock() {
  if (folder_ >= 0) ::close(folder_);
}

}  // namespace sparkle
