// AppendedFile: a file of lines that grows by one line after another and is gone on with by whoever opens it next.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"

namespace sparkle {

class AppendedFile {
 public:
  // Calls `line` with each whole line that is there, without its end; where the last one was not written to its end it is cut
  // off, once `line` has agreed to all others. Errors: those of `line`; file_unreadable, file_unwritable, naming `what`.
  static Result<std::unique_ptr<AppendedFile>> open(const std::string& path, const std::string& what,
                                                    const std::function<Status(const std::string&)>& line);
  // Standard output.
  static std::unique_ptr<AppendedFile> standard_output();
  ~AppendedFile();
  AppendedFile(const AppendedFile&) = delete;
  AppendedFile& operator=(const AppendedFile&) = delete;
  // A line and its end, handed to the system before this returns. Errors: file_unwritable.
  Status append(const std::string& line);

 private:
  AppendedFile(std::FILE* file, std::string name) : file_(file), name_(std::move(name)) {}
  std::FILE* file_;
  std::string name_;
};

}  // namespace sparkle
