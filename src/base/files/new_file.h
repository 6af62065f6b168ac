// The one way files are written: aside, in the folder of their name, and renamed once they are whole. Whenever it ends - a full
// disk, a limit on files, a kill - the name holds the old file or the new one, never a part. Where a file may be written but
// its name not be given to another (a closed folder, a mount of one file), what is whole is copied over it: there a kill during
// the copy alone leaves a part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <sys/stat.h>

#include "base/result.h"

namespace sparkle {

// Whether the bytes must have reached the disk before the name shows them: for what later runs rely on.
enum class Durable : uint8_t { no, yes };

class NewFile {
 public:
  // Where the name is a link, what it leads to is replaced or made; a device or a pipe is written into as it is. What killed
  // processes left beside it goes. A new file has the permissions of any new file; one that is replaced keeps its permissions,
  // and its group and owner where this process may give them. Errors: file_unwritable.
  static Result<NewFile> create(const std::string& path);
  NewFile(NewFile&& other) noexcept;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();  // without finish() nothing is left

  Status write(std::span<const std::byte> bytes);                 // behind what is written
  Status write_at(int64_t at, std::span<const std::byte> bytes);  // over what is written
  int64_t size() const { return size_; }
  Status finish(Durable durable = Durable::no);

 private:
  NewFile() = default;
  Error failed(int error) const;
  Status put(std::span<const std::byte> bytes, int64_t at);
  Status copy_over(Durable durable);

  std::string given_, path_, aside_;  // as the caller named it; links followed; empty where it has no name in its folder
  int file_ = -1;
  int64_t size_ = 0;
  std::optional<struct stat> old_;  // the file that is replaced; without it and aside_ it is written into as it is
};

// The whole file. Errors: file_unwritable.
Status write_file(const std::string& path, std::span<const std::byte> bytes, Durable durable = Durable::no);

// Whether a file of this name could be written now; nothing is left. Errors: file_unwritable.
Status check_writable(const std::string& path);

// Error bad_usage where both names lead to one file: what is read must still be there when what is made of it is no good.
Status check_apart(const std::string& output, const std::string& input);

// While it lives no other process or thread holds one for a file of the same folder: who reads, changes and writes a file again
// loses nothing of what others write. Gives up waiting after ten seconds, and where the folder cannot be locked.
class FolderLock {
 public:
  explicit FolderLock(const std::string& path_of_file);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  bool held() const { return held_; }
  // Whether another process kept it all the time; not held and not taken: the file system has no locks.
  bool taken() const { return taken_; }

 private:
  int folder_ = -1;
  bool held_ = false, taken_ = false;
};

}  // namespace sparkle
