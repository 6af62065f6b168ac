// TuningStore: measured choices as readable text. One line per problem: key <tab> algorithm <tab> schedule. Times are no part
// of it, so that equal choices are equal text. A store belongs to one device (with its cores) and version; another one's is
// refused with a reason.
#pragma once

#include <map>
#include <string>

#include "device/device.h"
#include "families/stage.h"

namespace sparkle {

class TuningStore {
 public:
  struct Entry {
    std::string algorithm;
    std::string schedule;  // of every stage that can take it; the others go by cost
  };
  // The header that stores of this device and build carry.
  static std::string header_for(const Device& device);
  const std::string& header() const { return header_; }

  explicit TuningStore(std::string header) : header_(std::move(header)) {}
  // Errors: bad_format naming the line; bad_input where the header is another device's or version's.
  static Result<TuningStore> parse(std::string_view text, const std::string& header);
  static Result<TuningStore> load(const std::string& path, const Device& device);
  // A path, or "kept": what `sparkle tune` keeps for this device in the user's cache. Errors: as above; file_unreadable where
  // nothing is kept.
  static Result<TuningStore> open(const std::string& where, const Device& device);
  static std::string kept_path(const Device& device);  // empty where the user has no cache
  Status save(const std::string& path) const;          // through a temporary file, then renamed
  std::string to_text() const;

  // The stored choice of a problem (tuning_key of plan/choose.h), or nullptr.
  const Entry* find(const std::string& problem) const;
  void put(const std::string& problem, Entry entry) { entries_[problem] = std::move(entry); }
  size_t size() const { return entries_.size(); }

 private:
  std::string header_;
  std::map<std::string, Entry> entries_;
};

}  // namespace sparkle
