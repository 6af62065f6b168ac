// Functions: the kernels of this build on a device, by name. A module is loaded when a kernel of it is first asked for: where
// the driver compiles PTX for a card that came later, a network waits for the files that it needs.
#pragma once

#include <map>
#include <mutex>

#include "backends/cuda/driver/context.h"
#include "backends/cuda/images.h"

namespace sparkle::cuda {

class Functions {
 public:
  // `images`: must outlive it. Errors: device_unusable where there are none.
  static Result<std::shared_ptr<Functions>> open(std::shared_ptr<Context> context,
                                                 std::span<const CodeImage> images = code_images());
  // Of a device that is only described: has every kernel that it is asked for, and none that can be launched.
  static std::shared_ptr<Functions> described() { return std::shared_ptr<Functions>(new Functions(nullptr)); }
  ~Functions();
  Functions(const Functions&) = delete;
  Functions& operator=(const Functions&) = delete;

  // `shared_bytes`: that launches ask for beside what the kernel declares; `cluster`: whether blocks are launched in clusters
  // of more than eight. Errors: backend_lacks_variant where there is none of that name or the driver does not take the module
  // with it, saying why; and what else the driver says.
  Result<CuFunction> get(const std::string& name, int64_t shared_bytes, bool large_cluster = false);
  size_t modules_loaded();

 private:
  struct Module {
    CodeImage image;
    CuModule handle = nullptr;
    std::string refused;  // why the driver does not take it
  };

  explicit Functions(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  Module* module_of(const std::string& name);
  // Loads it unless it is. Errors: backend_lacks_variant, and what else the driver says.
  Status load(Module& module, const std::string& name);

  std::shared_ptr<Context> context_;
  std::vector<Module> modules_;
  std::mutex mutex_;
  struct Found {
    CuFunction function = nullptr;
    int64_t shared_bytes = 0;
  };
  std::map<std::string, Found> found_;
};

}  // namespace sparkle::cuda
