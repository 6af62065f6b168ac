// What tasks draw of each item of a stream, as files in a folder.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "vision/tasks/answer.h"

namespace sparkle::cli {

class AnswerPictures {
 public:
  // Makes the folder. Each item has a name of its own there: that of its file, of two with the same one the second with a
  // number. Errors: bad_usage for an item that cannot be read twice, file_unwritable.
  static Result<AnswerPictures> open(const std::string& folder, std::vector<std::string> items);

  // The folder's file of lines.
  std::string lines() const;
  // Writes what is drawn of an answer, from any thread: the item's picture is read again for it, so that none is kept until
  // then. Gives the paths. Errors: those of reading a picture, file_unwritable.
  Result<std::vector<std::string>> write(int64_t item, const Answer& answer, const std::vector<std::string>& labels) const;

 private:
  std::string folder_;
  std::vector<std::string> items_, names_;
};

}  // namespace sparkle::cli
