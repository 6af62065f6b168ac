#include "plan/choose/tuning_store.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <span>
#include <sstream>

#include "base/files/cache_folder.h"
#include "base/files/new_file.h"
#include "base/files/read_file.h"

namespace sparkle {

std::string TuningStore::header_for(const Device& device) {
  std::string units;  // what is fastest by one unit says nothing about another
  for (const MathUnit& unit : device.units) units += (units.empty() ? "" : ",") + unit.name;
  return "sparkle-tuning 2\tversion=" SPARKLE_VERSION "\tdevice=" + device.name + "\tarchitecture=" + device.architecture +
         "\tcores=" + std::to_string(device.cores) + "\tunits=" + units + "\tdriver=" + device.driver;
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
    if (first == 0 || second == std::string::npos || second == first + 1 || second + 1 == line.size() ||
        line.find('\t', second + 1) != std::string::npos)
      return Error{Reason::bad_format, where + "expected problem, algorithm and schedule with tabs between."};
    store.entries_[line.substr(0, first)] = {line.substr(first + 1, second - first - 1), line.substr(second + 1)};
  }
  if (text.empty()) return Error{Reason::bad_format, "The tuning store is empty; its first line must be '" + header + "'."};
  return store;
}

Result<TuningStore> TuningStore::load(const std::string& path, const Device& device) { return read(path, header_for(device)); }

Result<TuningStore> TuningStore::read(const std::string& path, const std::string& header) {
  SPARKLE_TRY(text, read_file(path, {"tuning store"}));
  auto store = parse(text, header);
  if (store.ok()) return store;
  Error error = store.take_error();
  error.message = "'" + path + "': " + error.message;
  return error;
}

std::string TuningStore::kept_path(const Device& device) {
  const std::string folder = cache_folder();
  char name[40];
  std::snprintf(name, sizeof name, "/tuning-%016llx.txt", static_cast<unsigned long long>(hash_text(header_for(device))));
  return folder.empty() ? folder : folder + name;
}

Result<TuningStore> TuningStore::open(const std::string& where, const Device& device) {
  if (where != "kept") return load(where, device);
  const std::string path = kept_path(device);
  if (path.empty())
    return Error{Reason::file_unreadable,
                 "No tuning store is kept: neither XDG_CACHE_HOME nor HOME names a folder; give the path of one."};
  if (std::error_code error; !std::filesystem::exists(path, error))
    return Error{Reason::file_unreadable,
                 "No tuning store is kept for this machine and number of threads ('" + path + "'); 'sparkle tune' makes one."};
  return load(path, device);
}

std::string TuningStore::to_text() const {
  std::string text = header_ + "\n";
  for (const auto& [problem, entry] : entries_) text += problem + "\t" + entry.algorithm + "\t" + entry.schedule + "\n";
  return text;
}

Status TuningStore::save(const std::string& path) {
  const FolderLock lock(path);  // between reading and writing nobody else writes
  if (std::error_code error; lock.taken() && std::filesystem::exists(path, error))
    return Error{Reason::file_unwritable,
                 "'" + path + "' was not written: another process keeps its folder locked; try again later."};
  if (std::error_code error; std::filesystem::exists(path, error)) {
    SPARKLE_TRY(there, read(path, header_));
    for (const std::string& problem : unsaved_) there.entries_[problem] = entries_[problem];
    for (auto& [problem, entry] : entries_) there.entries_.try_emplace(problem, entry);
    entries_ = std::move(there.entries_);
  }
  const std::string text = to_text();
  SPARKLE_CHECK(write_file(path, std::as_bytes(std::span(text)), Durable::yes));
  unsaved_.clear();
  return ok();
}

void TuningStore::put(const std::string& problem, Entry entry) {
  entries_[problem] = std::move(entry);
  unsaved_.insert(problem);
}

const TuningStore::Entry* TuningStore::find(const std::string& problem) const {
  const auto at = entries_.find(problem);
  return at == entries_.end() ? nullptr : &at->second;
}

}  // namespace sparkle
