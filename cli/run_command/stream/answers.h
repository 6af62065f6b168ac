// Answers: a file with a line for each item, JSON Lines or CSV by its name, written in order. A file that was begun before is
// gone on with.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/files/appended_file.h"

namespace sparkle::cli {

class Answers {
 public:
  // `path`: FILE.jsonl or FILE.csv; empty: standard output, in JSON Lines. `run`: what tells these answers from those of
  // another model, another preparation or other labels; in each line. `items`: what the lines are about, in order; empty:
  // numbered, as frames are. `top`: classes of a line in CSV. Errors: bad_usage for another ending and for a file that is about
  // other items or another run; file_unreadable, file_unwritable.
  static Result<std::unique_ptr<Answers>> open(const std::string& path, const std::string& model, const std::string& run,
                                               std::vector<std::string> items, int top);
  // Items that the file has lines for already, and those of them that hold an error.
  int64_t done() const { return begin_; }
  int64_t failed_before() const { return failed_; }
  static bool is_name(const std::string& path) { return path.ends_with(".jsonl") || path.ends_with(".csv"); }

  // An item's outputs as show_output() gives them and what was answered from them (null: nothing), or what was wrong with it;
  // from any thread, in any order. Errors: file_unwritable, once and for all.
  Status put(int64_t item, const nlohmann::json& outputs, const nlohmann::json& answer);
  Status put_error(int64_t item, const std::string& sentence);
  // Once all are there. Errors: file_unwritable.
  Status close() { return file_->close(); }

 private:
  Answers() = default;
  Status resume(const std::string& line, bool& head);
  Status write(int64_t item, std::string line);
  std::string name_of_item(int64_t item) const;
  std::string csv_line(int64_t item, const nlohmann::json* outputs, const std::string& error) const;
  std::string csv_head() const;

  std::string path_, model_, run_;
  std::vector<std::string> items_;
  bool csv_ = false;
  int top_ = 1;
  int64_t begin_ = 0, failed_ = 0;
  std::mutex mutex_;  // of what follows
  std::unique_ptr<AppendedFile> file_;
  int64_t next_ = 0;
  std::map<int64_t, std::string> early_;
  Status written_ = ok();
};

}  // namespace sparkle::cli
