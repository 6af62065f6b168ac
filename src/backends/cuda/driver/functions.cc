#include "backends/cuda/driver/functions.h"

#include <algorithm>

#include "backends/cuda/images.h"

namespace sparkle::cuda {
namespace {

constexpr int64_t kSharedByDefault = 48 << 10;  // what a launch may ask for without being allowed more

}  // namespace

Result<std::shared_ptr<Functions>> Functions::load(std::shared_ptr<Context> context) {
  const Driver& d = context->driver();
  const Current current(*context);
  std::shared_ptr<Functions> functions(new Functions(context));
  const std::span<const CodeImage> images = code_images();
  const auto load_one = [&](const void* bytes) {
    CuModule module = nullptr;
    const CuResult loaded = d.module_load(&module, bytes);
    if (loaded == CuResult::success) functions->modules_.push_back(module);
    return loaded;
  };
  // A stand-in for a driver has kernels of its own and looks at no image.
  if (images.empty() && load_one("no kernels") != CuResult::success)
    return Error{Reason::device_unusable,
                 "This build of Sparkle holds no CUDA kernels, because nvcc was not there; build it where it is "
                 "(scripts/setup cuda), or use --device vulkan or cpu."};
  for (const CodeImage& image : images) {
    // What is made for one architecture alone says so.
    if (image.name.ends_with("_sm90a") && context->device().capability != 90) continue;
    SPARKLE_CU(d, load_one(image.code.data()), "Loading the kernels '" + std::string(image.name) + "'");
  }
  return functions;
}

Functions::~Functions() {
  if (!context_) return;
  const Current current(*context_);
  for (const CuModule module : modules_) context_->driver().module_unload(module);
}

Result<CuFunction> Functions::get(const std::string& name, int64_t shared_bytes, bool large_cluster) {
  if (!context_) return CuFunction{};
  const Driver& d = context_->driver();
  const Current current(*context_);
  const std::lock_guard lock(mutex_);
  Found& found = found_[name];
  for (const CuModule module : modules_) {
    if (found.function) break;
    const CuResult result = d.module_function(&found.function, module, name.c_str());
    if (result != CuResult::not_found) SPARKLE_CU(d, result, "cuModuleGetFunction of " + name);
  }
  if (!found.function) {
    found_.erase(name);
    return Error{Reason::backend_lacks_variant, "this build has no CUDA kernel '" + name + "'"};
  }
  if (shared_bytes > std::max(found.shared_bytes, kSharedByDefault)) {
    SPARKLE_CU(
        d, d.function_set(found.function, CuFunctionAttribute::max_dynamic_shared_size_bytes, static_cast<int>(shared_bytes)),
        "Giving " + name + " " + std::to_string(shared_bytes) + " bytes of shared memory");
    found.shared_bytes = shared_bytes;
  }
  if (large_cluster)
    SPARKLE_CU(d, d.function_set(found.function, CuFunctionAttribute::non_portable_cluster_size_allowed, 1),
               "Giving " + name + " large clusters");
  return found.function;
}

}  // namespace sparkle::cuda
