// Programs: texts that come with a model, compiled by NVRTC for a device. What was compiled is kept in memory, and on disk for
// other processes.
#pragma once

#include <map>
#include <mutex>

#include "backends/cuda/driver/context.h"

namespace sparkle::cuda {

class Programs {
 public:
  // The device's description says that it compiles. `folder`: where compiled texts are kept; empty: nowhere.
  Programs(std::shared_ptr<Context> context, const std::string& folder);
  ~Programs();
  Programs(const Programs&) = delete;
  Programs& operator=(const Programs&) = delete;

  // The kernel `name` of a text. Errors: those of Nvrtc::compile, and what the driver says of what was compiled.
  Result<CuFunction> get(const std::string& name, const std::string& text);
  // What was done so far.
  struct Counters {
    uint64_t compiled = 0, read = 0;  // read: from disk
  };
  Counters counters() const;

 private:
  struct Loaded {
    CuModule module = nullptr;
    CuFunction function = nullptr;
  };
  Result<Loaded> load(const std::string& name, const std::string& ptx);
  std::string file_of(const std::string& key) const;
  void keep(const std::string& path, const std::string& key, const std::string& ptx);

  std::shared_ptr<Context> context_;
  std::string folder_, about_;  // about: what a compiled text depends on besides itself
  int architecture_ = 0;
  mutable std::mutex mutex_;
  std::map<std::string, Loaded> loaded_;  // by text
  Counters counters_;
};

}  // namespace sparkle::cuda
