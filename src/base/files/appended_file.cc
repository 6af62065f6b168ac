#include "base/files/appended_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace sparkle {

Result<std::unique_ptr<AppendedFile>> AppendedFile::open(const std::string& path, const std::string& what,
                                                         const std::function<Status(const std::string&)>& line) {
  const std::string name = "The " + what + " '" + path + "'";
  std::error_code error;
  if (std::filesystem::exists(path, error)) {
    if (!std::filesystem::is_regular_file(path, error))
      return Error{Reason::file_unwritable, name + " cannot be gone on with: it is no file; give another name."};
    std::ifstream there(path, std::ios::binary);
    if (!there) return Error{Reason::file_unreadable, name + " cannot be read: " + std::strerror(errno) + "."};
    uintmax_t whole = 0;
    for (std::string text; std::getline(there, text) && !there.eof(); whole += text.size() + 1) SPARKLE_CHECK(line(text));
    there.close();
    std::filesystem::resize_file(path, whole, error);
    if (error) return Error{Reason::file_unwritable, name + " cannot be gone on with: " + error.message() + "."};
  }
  std::FILE* file = std::fopen(path.c_str(), "ab");
  if (!file) return Error{Reason::file_unwritable, name + " cannot be written: " + std::strerror(errno) + "."};
  return std::unique_ptr<AppendedFile>(new AppendedFile(file, name));
}

std::unique_ptr<AppendedFile> AppendedFile::standard_output() {
  return std::unique_ptr<AppendedFile>(new AppendedFile(stdout, "Standard output"));
}

AppendedFile::~AppendedFile() {
  if (file_ != stdout) std::fclose(file_);
}

Status AppendedFile::append(const std::string& line) {
  const std::string text = line + "\n";
  if (std::fwrite(text.data(), 1, text.size(), file_) == text.size() && std::fflush(file_) == 0) return ok();
  return Error{Reason::file_unwritable, name_ + " cannot be written: " + std::strerror(errno) + "."};
}

}  // namespace sparkle
