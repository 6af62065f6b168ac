// The verdict cache: which variants this driver has been seen to run right. Each is tried before its first use, those on matrix
// units for speed too; what was found is kept by driver and version. A marker on disk says what was being tried when a process
// ended: that is denied until a sandbox process has seen it work, and for good where it ends a second one.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <mutex>

#include "backends/self_tests/self_tests.h"

namespace sparkle {

// Of whom and how.
struct VerdictCacheOptions {
  std::string folder;          // of the record; empty: nothing is kept beyond this process
  std::string backend;         // "vulkan": the records of backends lie side by side
  std::string build;           // what tells this driver with these kernels from all others: part of a file's name
  std::string device, driver;  // as messages name them
  std::chrono::nanoseconds try_timeout = std::chrono::seconds(20);    // of each self-test
  std::chrono::nanoseconds give_up_after = std::chrono::seconds(20);  // on a kernel that has timed out
  bool sandbox = false;                                               // this process may end with a driver
  std::function<void(const std::string& lines)> try_elsewhere;        // tries kernels, a line each, in a process of its own
};

class VerdictCache {
 public:
  explicit VerdictCache(VerdictCacheOptions options);

  // Tries what has not been tried, in a process of its own where the options have one, else here. The variants that failed are
  // in denylist() from then on. Errors: failed_probe naming the first of these that is denied; out_of_memory, which says
  // nothing of a kernel.
  Status try_out(Backend& backend, std::span<const SelfTest> self_tests);
  // Does what runs on the driver and is no self-test of a kernel with a marker on disk. Where a process has ended with it, or
  // it has lost the device, it is not done (device_unusable). `name`: like a variant's.
  Status guarded(Backend& backend, const std::string& name, const std::function<Status()>& work);
  // "gemm/implicit pool/shader"
  std::string denylist() const;
  // Variant and what was wrong with it, in sentences.
  std::vector<std::string> findings() const;
  // The same of variants that are as fast as they must be: how fast.
  std::vector<std::string> speeds() const;

 private:
  struct Verdict {
    std::string variant;  // "gemm/implicit"
    std::string finding;  // "ok", "ok, ..." with what was measured, or what was wrong
    bool good() const { return finding.starts_with("ok"); }
  };
  static std::string key_of(const SelfTest& self_test);
  static std::string speed_key(const SelfTest& self_test);
  std::string file() const;
  std::string marker() const;
  void interrupt(const std::string& key, const std::string& variant);
  void load();
  void deny_interrupted();
  enum class Open { nothing, results, speed };
  // What is left to find out.
  Open open(const SelfTest& self_test) const;
  void keep(const std::string& key, const SelfTest& self_test, const std::string& finding);
  // Keeps what a self-test tells of its kernel; waits until what has timed out is over. Errors: those that tell nothing of it.
  Status conclude(Backend& backend, const std::string& key, const SelfTest& self_test, const Status& tried,
                  const std::string& good);
  void try_elsewhere(std::span<const SelfTest> self_tests);
  Status try_here(Backend& backend, const SelfTest& self_test);
  Status time_here(Backend& backend, const SelfTest& self_test);

  const VerdictCacheOptions options_;
  mutable std::mutex mutex_;
  std::map<std::string, Verdict> verdicts_;         // by what was tried
  std::map<std::string, std::string> interrupted_;  // variants during whose self-test one process has ended
};

}  // namespace sparkle
