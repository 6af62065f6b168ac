#include "base/files/mapped_file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/files/read_file.h"

namespace sparkle {
namespace {
Error unreadable(const std::string& path, const std::string& why) {
  return {Reason::file_unreadable, "'" + path + "' cannot be read: " + why + "."};
}
}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path, Pages pages) {
  SPARKLE_TRY(file, open_to_read(path, {}));
  struct stat status{};
  if (::fstat(file, &status) != 0) {
    const std::string why = std::strerror(errno);
    ::close(file);
    return unreadable(path, why);
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

}  // namespace sparkle
