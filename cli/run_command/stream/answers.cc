#include "run_command/stream/answers.h"

#include <filesystem>

#include "base/printable.h"

namespace sparkle::cli {
namespace {

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields(1);
  bool inside = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && inside && i + 1 < line.size() && line[i + 1] == '"') fields.back() += line[i++];
    else if (line[i] == '"') inside = !inside;
    else if (line[i] == ',' && !inside) fields.emplace_back();
    else fields.back() += line[i];
  }
  return fields;
}

std::string dumped(const nlohmann::json& json) { return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace); }

}  // namespace

Result<std::unique_ptr<Answers>> Answers::open(const std::string& path, const std::string& model, const std::string& run,
                                               std::vector<std::string> items, int top) {
  if (!path.empty() && !is_name(path))
    return Error{Reason::bad_usage,
                 "Answers of several items go into a file of lines; write --output FILE.jsonl or FILE.csv, not '" + path +
                     "'; a folder is for pictures in files whose task is drawn: detect, segment, upscale or depth."};
  std::unique_ptr<Answers> answers(new Answers);
  answers->path_ = path, answers->run_ = run, answers->items_ = std::move(items), answers->top_ = top;
  answers->model_ = std::filesystem::path(model).filename().string();
  answers->csv_ = path.ends_with(".csv");
  if (path.empty()) {
    answers->file_ = AppendedFile::standard_output();
    return answers;
  }
  bool head = false;
  SPARKLE_TRY(file, AppendedFile::open(path, "answers", [&](const std::string& line) { return answers->resume(line, head); }));
  answers->file_ = std::move(file), answers->next_ = answers->begin_;
  if (answers->csv_ && !head) SPARKLE_CHECK(answers->file_->append(answers->csv_head()));
  return answers;
}

// A line that is there already.
Status Answers::resume(const std::string& line, bool& head) {
  const auto other = [&](const std::string& what) {
    return Error{Reason::bad_usage, "'" + path_ + "' was not begun by this command: line " +
                                        std::to_string(begin_ + 1 + (csv_ && head)) + " " + what +
                                        ". Give another --output, or remove the file."};
  };
  if (csv_ && !head) {
    head = true;
    return line == csv_head() ? ok() : Status(other("is another heading"));
  }
  std::string about, model = model_, run;
  bool failed = false;
  if (csv_) {
    const std::vector<std::string> fields = fields_of(line);
    if (fields.size() != static_cast<size_t>(3 + 3 * top_)) return other("is no answer");
    about = fields[0], failed = !fields[1].empty(), run = fields.back();
  } else {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("item") || !json["item"].is_string()) return other("is no answer");
    about = json["item"], failed = json.contains("error");
    if (json.contains("model") && json["model"].is_string()) model = json["model"];
    if (json.contains("run") && json["run"].is_string()) run = json["run"];
  }
  if (!items_.empty() && begin_ >= static_cast<int64_t>(items_.size())) return other("is about one more item than is given");
  if (about != name_of_item(begin_))
    return other("is about '" + printable(about) + "', where '" + printable(name_of_item(begin_)) + "' is given");
  if (model != model_) return other("is an answer of '" + printable(model) + "'");
  if (run != run_) return other("is an answer of another model, preparation or set of labels than are given now");
  ++begin_, failed_ += failed;
  return ok();
}

std::string Answers::name_of_item(int64_t item) const {
  return items_.empty() ? std::to_string(item) : items_[static_cast<size_t>(item)];
}

std::string Answers::csv_head() const {
  std::string head = "item,error";
  for (int i = 1; i <= top_; ++i) {
    const std::string n = std::to_string(i);
    head += ",class" + n + ",label" + n + ",probability" + n;
  }
  return head + ",run";
}

std::string Answers::csv_line(int64_t item, const nlohmann::json* outputs, const std::string& error) const {
  std::string line = quoted(name_of_item(item)) + "," + quoted(error);
  int columns = 0;
  if (outputs)
    for (const auto& output : *outputs) {
      if (!output.contains("top")) continue;
      for (const auto& row : output["top"]) {
        if (columns++ == top_) break;
        line += "," + std::to_string(row["class"].get<int64_t>()) + "," + quoted(row["label"].get<std::string>()) + "," +
                dumped(row["probability"]);
      }
      break;
    }
  for (; columns < top_; ++columns) line += ",,,";
  return line + "," + run_;
}

Status Answers::put(int64_t item, const nlohmann::json& outputs, const nlohmann::json& answer) {
  if (csv_) {
    bool classes = false;
    for (const auto& output : outputs) classes = classes || output.contains("top");
    if (!classes)
      return Error{Reason::bad_usage,
                   "No output of this model is a row of classes, which is what CSV holds; write --output FILE.jsonl."};
    return write(item, csv_line(item, &outputs, ""));
  }
  nlohmann::json line{{"item", name_of_item(item)}, {"model", model_}, {"run", run_}, {"outputs", outputs}};
  if (!answer.is_null()) line["answer"] = answer;
  return write(item, dumped(line));
}

Status Answers::put_error(int64_t item, const std::string& sentence) {
  return write(item, csv_ ? csv_line(item, nullptr, sentence)
                          : dumped({{"item", name_of_item(item)}, {"model", model_}, {"run", run_}, {"error", sentence}}));
}

Status Answers::write(int64_t item, std::string line) {
  const std::lock_guard lock(mutex_);
  if (!written_.ok()) return written_.error();
  early_.emplace(item, std::move(line));
  while (!early_.empty() && early_.begin()->first == next_) {
    ++next_;
    if (written_ = file_->append(early_.extract(early_.begin()).mapped()); !written_.ok()) return written_.error();
  }
  return ok();
}

}  // namespace sparkle::cli
