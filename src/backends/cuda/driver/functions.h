// Functions: the kernels of this build, loaded for a device, by name.
#pragma once

#include <map>
#include <mutex>

#include "backends/cuda/driver/context.h"

namespace sparkle::cuda {

class Functions {
 public:
  // Errors: device_unusable where this build holds no kernels or the driver does not take them.
  static Result<std::shared_ptr<Functions>> load(std::shared_ptr<Context> context);
  // Of a device that is only described: has every kernel that it is asked for, and none that can be launched.
  static std::shared_ptr<Functions> described() { return std::shared_ptr<Functions>(new Functions(nullptr)); }
  ~Functions();
  Functions(const Functions&) = delete;
  Functions& operator=(const Functions&) = delete;

  // `shared_bytes`: that launches ask for beside what the kernel declares; `cluster`: whether blocks are launched in clusters
  // of more than eight. Errors: backend_lacks_variant where there is none of that name, and what the driver says.
  Result<CuFunction> get(const std::string& name, int64_t shared_bytes, bool large_cluster = false);

 private:
  explicit Functions(std::shared_ptr<Context> context) : context_(std::move(context)) {}

  std::shared_ptr<Context> context_;
  std::vector<CuModule> modules_;
  std::mutex mutex_;
  struct Found {
    CuFunction function = nullptr;
    int64_t shared_bytes = 0;
  };
  std::map<std::string, Found> found_;
};

}  // namespace sparkle::cuda
