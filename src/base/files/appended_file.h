// AppendedFile: a file of lines that grows by one line after another and is gone on with by whoever opens it next.
#pragma once

#include <cstdint>
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
  // Closes what close() has not; what is wrong then nobody hears.
  ~AppendedFile();
  AppendedFile(const AppendedFile&) = delete;
  AppendedFile& operator=(const AppendedFile&) = delete;
  // A line and its end, handed to the system before this returns. Of a line that does not fit, as on a full disk, nothing stays
  // in the file. Errors: file_unwritable.
  Status append(const std::string& line);
  // Some file systems only tell at the end what they could not keep. Errors: file_unwritable.
  Status close();

 private:
  AppendedFile(int file, std::string name, int64_t whole) : file_(file), name_(std::move(name)), whole_(whole) {}
  Error unwritable(int error) const;

  int file_;  // -1: closed
  std::string name_;
  int64_t whole_;  // bytes of whole lines; of a file
};

}  // namespace sparkle
