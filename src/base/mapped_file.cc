#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace sparkle {
namespace {
Error unreadable(const std::string& path, const std::string& why) {
  return {Reason::file_unreadable, "'" + path + "' cannot be read: " + why + "."};
}
}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path, Pages pages) {
  // Without O_NONBLOCK a pipe of that name, which a model may ask for as its data, would be waited for.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return unreadable(path, std::strerror(errno));
  struct stat status{};
  if (::fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(file);
    return unreadable(path, "it is not a regular file");
  }
  MappedFile mapped;
  mapped.size_ = static_cast<size_t>(status.st_size);
  if (mapped.size_ > 0) {
    void* data = ::mmap(nullptr, mapped.size_, PROT_READ, MAP_PRIVATE | (pages == Pages::all ? MAP_POPULATE : 0), file, 0);
    if (data == MAP_FAILED) {
      const std::string why = std::strerror(errno);
      mapped.size_ = 0;
      ::close(file);
      return unreadable(path, why);
    }
    mapped.data_ = static_cast<const std::byte*>(data);
  }
  ::close(file);
  return mapped;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

Status write_file(const std::string& path, std::span<const std::byte> bytes) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (!file) return Error{Reason::file_unwritable, "'" + path + "' cannot be written: " + std::strerror(errno) + "."};
  const bool written = bytes.empty() || std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  if (std::fclose(file) != 0 || !written)
    return Error{Reason::file_unwritable, "'" + path + "' could not be written in full: " + std::strerror(errno) + "."};
  return ok();
}

}  // namespace sparkle
