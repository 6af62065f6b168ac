// TuningStore: measured choices as readable text. One line per problem: key <tab> algorithm <tab> schedule. Times are no part
// of it, so that equal choices are equal text. A store belongs to one device (with its cores) and version; another one's is
// refused with a reason.
#pragma once

#include <map>
#include <set>
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
  // Adds what was put to what the file holds by now, for several processes may tune at once; what they stored joins this store.
  // Errors: those of load(); file_unwritable.
  Status save(const std::string& path);
  std::string to_text() const;

  // The stored choice of a problem (tuning_key of plan/choose/choose.h), or nullptr.
  const Entry* find(const std::string& problem) const;
  void put(const std::string& problem, Entry entry);
  size_t size() const { return entries_.size(); }

 private:
  std::string header_;
  static Result<TuningStore> read(const std::string& path, const std::string& header);

  std::map<std::string, Entry> entries_;
  std::set<std::string> unsaved_;  // problems of entries_
};

}  // namespace sparkle
