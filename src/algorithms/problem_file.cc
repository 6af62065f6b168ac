#include "algorithms/problem_file.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <sstream>

#include "base/files/read_file.h"
#include "base/printable.h"
#include "base/text/listed.h"

namespace sparkle {
namespace {

constexpr int kDeepest = 8;         // files that name files
constexpr size_t kMostFiles = 200;  // of one reading
constexpr size_t kMostProblems = 50000, kMostNotes = 100;

struct Settings {
  std::vector<std::string> types, directions;
  int64_t images = 0;  // 0: each problem's own
  bool relu = false;
};

bool unquoted_is(std::string_view value, std::string_view word) {
  if (value.size() >= 2 && (value.front() == '\'' || value.front() == '"') && value.back() == value.front())
    value = value.substr(1, value.size() - 2);
  return value == word;
}

class Reading {
 public:
  Reading(const ProblemFileOptions& options, const ReadText& read) : read_(read) {
    start_.types = {options.dt.empty() ? "f32" : options.dt};
    start_.directions = {options.dir.empty() ? "FWD_B" : options.dir};
  }

  Status file(std::string_view text, const std::string& where, int depth) {
    if (depth > kDeepest || ++files_ > kMostFiles)
      return Error{Reason::bad_format, "'" + where + "' is one file too many behind --batch: at most " +
                                           std::to_string(kDeepest) + " deep and " + std::to_string(kMostFiles) +
                                           " in all are read."};
    Settings settings = start_;
    std::istringstream lines{std::string(text)};
    std::string line;
    for (int number = 1; std::getline(lines, line); ++number) {
      where_ = where + ":" + std::to_string(number) + ": ";
      if (const size_t comment = line.find('#'); comment != std::string::npos) line.resize(comment);
      std::istringstream words(line);
      for (std::string word; words >> word;) {
        if (!word.starts_with("--")) SPARKLE_CHECK(problem(word, settings));
        else if (word.starts_with("--batch=")) SPARKLE_CHECK(batch(word.substr(8), where, depth));
        else SPARKLE_CHECK(option(word, settings));
      }
    }
    return ok();
  }
  ProblemFile take() { return std::move(file_); }

 private:
  Error bad(const std::string& what) const { return {Reason::bad_format, where_ + what}; }
  void note(const std::string& sentence) {
    if (file_.notes.size() < kMostNotes && std::find(file_.notes.begin(), file_.notes.end(), sentence) == file_.notes.end())
      file_.notes.push_back(sentence);
  }

  Status batch(const std::string& name, const std::string& where, int depth) {
    const auto path = (std::filesystem::path(where).parent_path() / name).string();
    SPARKLE_TRY(text, read_(path));
    return file(text, path, depth + 1);
  }

  Status option(const std::string& word, Settings& s) {
    const size_t equals = word.find('=');
    const std::string name = word.substr(2, equals == std::string::npos ? word.size() : equals - 2);
    const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (name == "reset") {
      s = start_;
    } else if (name == "dt" || name == "dir") {
      auto& list = name == "dt" ? s.types : s.directions;
      list = comma_separated(value);
      if (value.empty() || list.size() > 16) return bad("'" + printable(word) + "' lists none, or more than 16.");
    } else if (name == "mb") {
      if (!record_detail::parse_number(value, s.images) || s.images < 0 || s.images > (int64_t{1} << 28))
        return bad("'" + printable(word) + "' gives no number of images.");
    } else if (name == "attr-post-ops" && (value.empty() || unquoted_is(value, "relu"))) {
      s.relu = !value.empty();
    } else if (!value.empty() && value != "any" && value != "undef" && value != "auto") {
      note("'" + printable(word.substr(0, 100)) +
           "' of a problem file means nothing here; what follows it is measured without.");
    }
    return ok();
  }

  // "f32" of "f32:f32:f32" too; empty, with a note, for what no kernel takes.
  std::string type_of(const std::string& said) {
    for (const char* type : {"f32", "f16", "bf16"}) {
      const std::string t = type;
      if (said == t || said == t + ":" + t + ":" + t) return t;
    }
    note("Problems of --dt=" + printable(said.substr(0, 60)) + " are left out: f32, f16 and bf16 are measured.");
    return "";
  }
  bool forward(const std::string& direction) {
    if (direction == "FWD_B" || direction == "FWD_D" || direction == "FWD_I") return true;
    note("Problems of --dir=" + printable(direction.substr(0, 60)) + " are left out: FWD_B, FWD_D and FWD_I are measured.");
    return false;
  }

  Status problem(std::string word, const Settings& s) {
    NamedProblem named;
    if (const size_t quote = word.find("n\""); quote != std::string::npos) {
      const size_t end = word.find('"', quote + 2);
      if (end == std::string::npos || end + 1 != word.size()) return bad("a name n\"...\" ends its problem, in quotes.");
      named.name = word.substr(quote + 2, end - quote - 2);
      if (printable(named.name) != named.name) return bad("the name holds control characters or more than 200 bytes.");
      word.resize(quote);
    }
    auto parsed = parse_conv(word);
    if (!parsed.ok()) return bad(parsed.error().message);
    if (s.images > 0) parsed->n = s.images;
    for (const std::string& said : s.types)
      for (const std::string& direction : s.directions) {
        const std::string type = type_of(said);
        if (!forward(direction) || type.empty()) continue;
        if (file_.problems.size() >= kMostProblems)
          return bad("this is problem " + std::to_string(kMostProblems + 1) + "; divide the file.");
        named.problem = *parsed;
        named.problem.dtype = type;
        named.problem.epilogue.bias = direction == "FWD_B";
        if (s.relu) named.problem.epilogue.activation = Activation::relu;
        file_.problems.push_back(named);
      }
    return ok();
  }

  const ReadText& read_;
  Settings start_;
  ProblemFile file_;
  std::string where_;
  size_t files_ = 0;
};

}  // namespace

Result<ProblemFile> parse_problem_file(std::string_view text, const std::string& where, const ProblemFileOptions& options,
                                       const ReadText& read) {
  Reading reading(options, read);
  SPARKLE_CHECK(reading.file(text, where, 0));
  ProblemFile file = reading.take();
  if (!file.problems.empty()) return file;
  std::string sentence = "'" + where + "' holds no convolution to measure.";
  for (const std::string& note : file.notes) sentence += " " + note;
  return Error{Reason::bad_usage, sentence};
}

Result<ProblemFile> read_problem_file(const std::string& path, const ProblemFileOptions& options) {
  const ReadText read = [](const std::string& name) { return read_file(name, {"problem file", int64_t{4} << 20, true}); };
  SPARKLE_TRY(text, read(path));
  return parse_problem_file(text, path, options, read);
}

}  // namespace sparkle
