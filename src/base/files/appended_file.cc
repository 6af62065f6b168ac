#include "base/files/appended_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

namespace sparkle {

Result<std::unique_ptr<AppendedFile>> AppendedFile::open(const std::string& path, const std::string& what,
                                                         const std::function<Status(const std::string&)>& line) {
  const std::string name = "The " + what + " '" + path + "'";
  std::error_code error;
  uintmax_t whole = 0;
  if (std::filesystem::exists(path, error)) {
    if (!std::filesystem::is_regular_file(path, error))
      return Error{Reason::file_unwritable, name + " cannot be gone on with: it is no file; give another name."};
    std::ifstream there(path, std::ios::binary);
    if (!there) return Error{Reason::file_unreadable, name + " cannot be read: " + std::strerror(errno) + "."};
    for (std::string text; std::getline(there, text) && !there.eof(); whole += text.size() + 1) SPARKLE_CHECK(line(text));
    if (there.bad()) return Error{Reason::file_unreadable, name + " cannot be read to its end: " + std::strerror(errno) + "."};
    there.close();
    std::filesystem::resize_file(path, whole, error);
    if (error) return Error{Reason::file_unwritable, name + " cannot be gone on with: " + error.message() + "."};
  }
  const int file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return Error{Reason::file_unwritable, name + " cannot be written: " + std::strerror(errno) + "."};
  return std::unique_ptr<AppendedFile>(new AppendedFile(file, name, static_cast<int64_t>(whole)));
}

std::unique_ptr<AppendedFile> AppendedFile::standard_output() {
  std::fflush(stdout);  // what was printed before comes before
  return std::unique_ptr<AppendedFile>(new AppendedFile(STDOUT_FILENO, "Standard output", 0));
}

AppendedFile::~AppendedFile() { (void)close(); }

Error AppendedFile::unwritable(int error) const {
  return {Reason::file_unwritable, name_ + " cannot be written: " + std::strerror(error) + "."};
}

Status AppendedFile::append(const std::string& line) {
  const std::string text = line + "\n";
  for (size_t done = 0; done < text.size();) {
    const ssize_t written = ::write(file_, text.data() + done, text.size() - done);
    if (written > 0) {
      done += static_cast<size_t>(written);
      continue;
    }
    const int error = written < 0 ? errno : EIO;
    if (error == EINTR) continue;
    Error failed = unwritable(error);
    if (done > 0 && file_ != STDOUT_FILENO && ::ftruncate(file_, whole_) != 0)
      failed.message += " Its last line is not whole; who goes on with it cuts it off.";
    return failed;
  }
  whole_ += static_cast<int64_t>(text.size());
  return ok();
}

Status AppendedFile::close() {
  const int file = std::exchange(file_, -1);
  if (file < 0 || file == STDOUT_FILENO || ::close(file) == 0) return ok();
  return unwritable(errno);
}

}  // namespace sparkle
