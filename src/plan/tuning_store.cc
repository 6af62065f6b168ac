#include "plan/tuning_store.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>

namespace sparkle {

std::string TuningStore::header_for(const Device& device) {
  return "sparkle-tuning 1\tdevice=" + device.name + "\tarchitecture=" + device.architecture +
         "\tcores=" + std::to_string(device.cores) + "\tdriver=" + device.driver;
}

namespace {
// Tabs as spaces, for sentences.
std::string on_one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\t', ' ');
  return text;
}
}  // namespace

Result<TuningStore> TuningStore::parse(std::string_view text, const std::string& header) {
  TuningStore store(header);
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const std::string where = "Tuning store, line " + std::to_string(number) + ": ";
    if (number == 1) {
      if (!line.starts_with("sparkle-tuning "))
        return Error{Reason::bad_format, where + "it is no tuning store; one begins with 'sparkle-tuning'."};
      if (line != header)
        return Error{Reason::bad_input, where + "it was made for '" + on_one_line(line) + "', this is '" + on_one_line(header) +
                                            "'; tune again here."};
      continue;
    }
    if (line.empty()) continue;
    const size_t first = line.find('\t'), second = first == std::string::npos ? first : line.find('\t', first + 1);
    Entry entry;
    if (second == std::string::npos || !record_detail::parse_number(std::string_view(line).substr(second + 1), entry.seconds) ||
        !(entry.seconds >= 0 && std::isfinite(entry.seconds)))
      return Error{Reason::bad_format, where + "expected problem, schedule and seconds with tabs between."};
    entry.schedule = line.substr(first + 1, second - first - 1);
    store.put(line.substr(0, first), std::move(entry));
  }
  if (text.empty()) return Error{Reason::bad_format, "The tuning store is empty; its first line must be '" + header + "'."};
  return store;
}

Result<TuningStore> TuningStore::load(const std::string& path, const Device& device) {
  std::ifstream file(path);
  if (!file) return Error{Reason::file_unreadable, "The tuning store '" + path + "' cannot be opened."};
  std::ostringstream text;
  text << file.rdbuf();
  auto store = parse(text.str(), header_for(device));
  if (store.ok()) return store;
  Error error = store.take_error();
  error.message = "'" + path + "': " + error.message;
  return error;
}

std::string TuningStore::to_text() const {
  std::string text = header_ + "\n";
  for (const auto& [problem, entry] : entries_) {
    char seconds[40];
    std::snprintf(seconds, sizeof seconds, "%.6g", entry.seconds);
    text += problem + "\t" + entry.schedule + "\t" + seconds + "\n";
  }
  return text;
}

Status TuningStore::save(const std::string& path) const {
  const std::string part = path + ".part";
  {
    std::ofstream file(part);
    file << to_text();
    if (!file.flush()) return Error{Reason::file_unwritable, "The tuning store '" + part + "' cannot be written."};
  }
  if (std::rename(part.c_str(), path.c_str()) != 0)
    return Error{Reason::file_unwritable, "The tuning store '" + path + "' cannot be replaced."};
  return ok();
}

const std::string* TuningStore::find(const std::string& problem) const {
  const auto at = entries_.find(problem);
  return at == entries_.end() ? nullptr : &at->second.schedule;
}

}  // namespace sparkle
