#include "backends/self_tests/verdict_cache.h"

#include <cstdio>
#include <set>
#include <sstream>

#include "backends/self_tests/self_test_speed.h"
#include "base/files/cache_folder.h"
#include "base/files/marker.h"
#include "base/files/read_file.h"
#include "base/record.h"
#include "families/values/epilogue.h"
#include "families/values/post_ops.h"

namespace sparkle {
namespace {

constexpr std::string_view kGood = "ok";
constexpr std::string_view kInterrupted = "interrupted";  // whoever ended the process, it may not have been the kernel
constexpr size_t kLongestLine = 4096;
// A variant must not take more than so many times as long as its rival: by less clocks and chance may differ.
constexpr double kSlower = 1.1;

std::string hex(uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

// Fields of a line of the record: what was tried, its variant, what came.
bool parse_line(const std::string& line, std::string& key, std::string& variant, std::string& finding) {
  const size_t first = line.find(' '), second = line.find(' ', first + 1);
  if (line.size() > kLongestLine || first == std::string::npos || second == std::string::npos) return false;
  key = line.substr(0, first), variant = line.substr(first + 1, second - first - 1), finding = line.substr(second + 1);
  return key.size() == 16 && variant.find('/') != std::string::npos && !finding.empty();
}

}  // namespace

VerdictCache::VerdictCache(VerdictCacheOptions options) : options_(std::move(options)) { load(); }

// Sizes, clip bounds and the like leave the kernel as it is, but the whole text is what was seen to work or not.
std::string VerdictCache::key_of(const SelfTest& self_test) {
  return hex(hash_text(self_test.to_text() + " " SPARKLE_VERSION));
}

// Speed is the variant's, whatever tile or epilogue brought it here.
namespace {
SelfTest without_post_op(SelfTest self_test) {
  if (Epilogue* e = epilogue_of(self_test.params)) e->post_op = {};
  return self_test;
}
}  // namespace
std::string VerdictCache::speed_key(const SelfTest& self_test) {
  return hex(hash_text("speed of " + without_post_op(self_test).variant() + " " SPARKLE_VERSION));
}

std::string VerdictCache::file() const {
  return options_.folder + "/" + options_.backend + "_tried_" + options_.build + ".txt";
}
std::string VerdictCache::marker() const { return options_.backend + "_trying_" + options_.build; }

void VerdictCache::load() {
  if (options_.folder.empty()) return;
  std::istringstream in(read_own_file(file(), int64_t{16} << 20));
  std::string line, key, variant, finding;
  while (std::getline(in, line) && !in.eof())  // a line without its end was not written in full
    if (!parse_line(line, key, variant, finding)) continue;
    else if (finding == kInterrupted) interrupted_.emplace(key, variant);
    else verdicts_[key] = {variant, finding};
  // What processes that are gone were trying ended them, or somebody did.
  for (const std::string& orphan : orphaned_markers(options_.folder, marker()))
    if (parse_line(orphan, key, variant, finding)) interrupt(key, variant);
  // Where a sandbox process can be asked, it is given another chance there, one.
  if (!options_.sandbox && !options_.try_elsewhere) deny_interrupted();
}

void VerdictCache::interrupt(const std::string& key, const std::string& variant) {
  const bool first = interrupted_.emplace(key, variant).second;
  if (!first) verdicts_[key] = {variant, "two processes that tried it ended, or lost the device"};
  if (!options_.folder.empty())
    append_line(file(), key + " " + variant + " " + (first ? std::string(kInterrupted) : verdicts_[key].finding));
}

void VerdictCache::deny_interrupted() {
  for (const auto& [key, variant] : interrupted_)
    verdicts_.try_emplace(
        key, Verdict{variant, "a process that tried it ended, or lost the device; a sparkle command tries it once more"});
}

VerdictCache::Open VerdictCache::open(const SelfTest& self_test) const {
  const std::lock_guard lock(mutex_);
  const auto found = verdicts_.find(key_of(self_test));
  if (found == verdicts_.end()) return Open::results;
  // Only what is right is worth a clock.
  return found->second.good() && needs_speed(self_test) && !verdicts_.count(speed_key(self_test)) ? Open::speed : Open::nothing;
}

void VerdictCache::keep(const std::string& key, const SelfTest& self_test, const std::string& finding) {
  std::string line = finding;
  for (char& c : line)
    if (c == '\n') c = ' ';
  const std::lock_guard lock(mutex_);
  verdicts_[key] = {self_test.variant(), line};
  if (options_.folder.empty()) return;
  append_line(file(), key + " " + self_test.variant() + " " + line);
}

Status VerdictCache::conclude(Backend& backend, const std::string& key, const SelfTest& self_test, const Status& tried,
                              const std::string& good) {
  if (tried.ok()) {
    keep(key, self_test, good);
    return ok();
  }
  if (tried.error().reason == Reason::out_of_memory) return tried;
  if (backend.lost()) {
    const std::lock_guard lock(mutex_);
    interrupt(key, self_test.variant());
    return tried;
  }
  keep(key, self_test, tried.error().message);
  return backend.settle(options_.give_up_after);
}

Status VerdictCache::try_here(Backend& backend, const SelfTest& self_test) {
  const std::string key = key_of(self_test);
  const Marker here(options_.folder, marker(), key + " " + self_test.variant() + " trying");
  return conclude(backend, key, self_test, run_self_test(backend, self_test, options_.try_timeout), std::string(kGood));
}

Status VerdictCache::time_here(Backend& backend, const SelfTest& asked) {
  const SelfTest self_test = without_post_op(asked);
  const std::string key = speed_key(self_test);
  const Marker here(options_.folder, marker(), key + " " + self_test.variant() + " trying");
  const auto times = times_of_rival(backend, self_test, options_.try_timeout);
  if (!times.ok()) return conclude(backend, key, self_test, times.error(), "");
  char ratio[32];
  std::snprintf(ratio, sizeof ratio, "%.2f", *times);
  keep(key, self_test,
       *times <= 0        ? "ok, not timed: the device's clock stands still"
       : *times > kSlower ? "not worth it: takes " + std::string(ratio) + " times as long as " + rival_of(self_test)
                          : "ok, takes " + std::string(ratio) + " times as long as " + rival_of(self_test));
  return ok();
}

Status VerdictCache::guarded(Backend& backend, const std::string& name, const std::function<Status()>& work) {
  const std::string key = hex(hash_text(name + " " SPARKLE_VERSION));
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = verdicts_.find(key); found != verdicts_.end())
      return Error{Reason::device_unusable,
                   "Not done on '" + options_.device + "' (" + name + "): " + found->second.finding + "."};
  }
  const Marker here(options_.folder, marker(), key + " " + name + " trying");
  Status done = work();
  if (!done.ok() && backend.lost()) {
    const std::lock_guard lock(mutex_);
    interrupt(key, name);
  }
  return done;
}

// A driver that crashes takes a process of its own with it, not this one. One that is ended by a kernel has told which, and
// another goes on with the rest.
void VerdictCache::try_elsewhere(std::span<const SelfTest> self_tests) {
  const auto known = [&] { return verdicts_.size() + interrupted_.size(); };
  for (size_t before = SIZE_MAX;;) {
    std::string lines;
    for (const SelfTest& self_test : self_tests)
      if (open(self_test) != Open::nothing) lines += self_test.to_text() + "\n";
    if (lines.empty() || before == known()) break;
    before = known();
    options_.try_elsewhere(lines);
    const std::lock_guard lock(mutex_);
    load();
  }
  const std::lock_guard lock(mutex_);
  deny_interrupted();
}

Status VerdictCache::try_out(Backend& backend, std::span<const SelfTest> asked) {
  std::vector<SelfTest> self_tests;
  std::set<std::string> keys;
  for (const SelfTest& self_test : asked)
    if (!stages_of(self_test).empty() && keys.insert(key_of(self_test)).second) self_tests.push_back(self_test);
  if (options_.try_elsewhere && !options_.folder.empty()) try_elsewhere(self_tests);
  for (const SelfTest& self_test : self_tests) {
    if (open(self_test) == Open::results) SPARKLE_CHECK(try_here(backend, self_test));
    if (open(self_test) == Open::speed) SPARKLE_CHECK(time_here(backend, self_test));
  }
  const std::lock_guard lock(mutex_);
  for (const SelfTest& self_test : self_tests)
    for (const std::string& key : {key_of(self_test), speed_key(self_test)}) {
      const auto found = verdicts_.find(key);
      if (found == verdicts_.end() || found->second.good()) continue;
      const Verdict& v = found->second;
      return Error{Reason::failed_probe, "The kernel " + v.variant + " failed on the driver '" + options_.driver + "' (" +
                                             v.finding + "); another one takes its place."};
    }
  return ok();
}

std::string VerdictCache::denylist() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const auto& [key, v] : verdicts_)
    if (!v.good() && (" " + text + " ").find(" " + v.variant + " ") == std::string::npos)
      text += (text.empty() ? "" : " ") + v.variant;
  return text;
}

std::vector<std::string> VerdictCache::findings() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> list;
  for (const auto& [key, v] : verdicts_)
    if (!v.good()) list.push_back(v.variant + ": " + v.finding);
  return list;
}

std::vector<std::string> VerdictCache::speeds() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> list;
  for (const auto& [key, v] : verdicts_)
    if (v.good() && v.finding != kGood) list.push_back(v.variant + " " + v.finding.substr(v.finding.find(' ') + 1));
  return list;
}

}  // namespace sparkle
