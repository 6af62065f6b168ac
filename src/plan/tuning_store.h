// TuningStore: measured choices as readable text. One line per problem: key <tab> schedule <tab> seconds. A store belongs to
// one device and version; another one's is refused with a reason.
#pragma once

#include <map>
#include <string>

#include "device/device.h"
#include "families/stage.h"

namespace sparkle {

class TuningStore {
 public:
  struct Entry {
    std::string schedule;
    double seconds = 0;
  };
  // The header that stores of this device and build carry.
  static std::string header_for(const Device& device);

  explicit TuningStore(std::string header) : header_(std::move(header)) {}
  // Errors: bad_format naming the line; bad_input where the header is another device's or version's.
  static Result<TuningStore> parse(std::string_view text, const std::string& header);
  static Result<TuningStore> load(const std::string& path, const Device& device);
  Status save(const std::string& path) const;  // through a temporary file, then renamed
  std::string to_text() const;

  // The stored schedule of a problem (its canonical text), or nullptr.
  const std::string* find(const std::string& problem) const;
  void put(const std::string& problem, Entry entry) { entries_[problem] = std::move(entry); }
  size_t size() const { return entries_.size(); }

 private:
  std::string header_;
  std::map<std::string, Entry> entries_;
};

}  // namespace sparkle
