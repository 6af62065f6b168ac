#include "backends/cuda/driver/functions.h"

#include <algorithm>

namespace sparkle::cuda {
namespace {

constexpr int64_t kSharedByDefault = 48 << 10;  // what a launch may ask for without being allowed more

// What is made for one architecture alone says so: 90 for "gemm_wgmma_f16_sm90a", else 0.
int made_for(std::string_view image) {
  const size_t at = image.rfind("_sm");
  if (at == std::string_view::npos || !image.ends_with("a")) return 0;
  int capability = 0;
  for (const char c : image.substr(at + 3, image.size() - at - 4))
    if (c < '0' || c > '9') return 0;
    else capability = 10 * capability + (c - '0');
  return capability;
}

std::string capability_text(int capability) { return std::to_string(capability / 10) + "." + std::to_string(capability % 10); }

}  // namespace

Result<std::shared_ptr<Functions>> Functions::open(std::shared_ptr<Context> context, std::span<const CodeImage> images) {
  std::shared_ptr<Functions> functions(new Functions(std::move(context)));
  for (const CodeImage& image : images) functions->modules_.push_back({image, nullptr, {}});
  if (!images.empty()) return functions;
  // A stand-in for a driver has kernels of its own and looks at no image.
  static constexpr char kNothing[] = "no kernels";
  const Context& c = *functions->context_;
  const Current current(c);
  Module any;
  if (c.driver().module_load(&any.handle, kNothing) != CuResult::success)
    return Error{Reason::device_unusable,
                 "This build of Sparkle holds no CUDA kernels, because nvcc was not there; build it where it is "
                 "(scripts/setup cuda), or use --device vulkan or cpu."};
  functions->modules_.push_back(std::move(any));
  return functions;
}

Functions::~Functions() {
  if (!context_) return;
  const Current current(*context_);
  for (const Module& module : modules_)
    if (module.handle) context_->driver().module_unload(module.handle);
}

Functions::Module* Functions::module_of(const std::string& name) {
  for (Module& module : modules_) {
    const std::string_view names = module.image.kernels;
    if (names.empty() && module.handle) return &module;
    for (size_t at = names.find(name); at != std::string_view::npos; at = names.find(name, at + 1))
      if ((at == 0 || names[at - 1] == '\n') && names.substr(at + name.size()).starts_with('\n')) return &module;
  }
  return nullptr;
}

Status Functions::load(Module& module, const std::string& name) {
  if (module.handle) return ok();
  const DeviceInfo& device = context_->device();
  const auto absent = [&] {
    return Error{Reason::backend_lacks_variant, "the CUDA kernel '" + name + "' is not there: " + module.refused};
  };
  if (!module.refused.empty()) return absent();
  const Driver& d = context_->driver();
  if (const int only = made_for(module.image.name); only > 0 && only != device.capability) {
    module.refused = "it is for compute capability " + capability_text(only) + " alone, and '" + device.name + "' has " +
                     capability_text(device.capability);
    return absent();
  }
  const CuResult loaded = d.module_load(&module.handle, module.image.code.data());
  if (loaded == CuResult::success) return ok();
  const std::string what = "loading the kernels '" + std::string(module.image.name) + "'";
  if (!is_refused(loaded)) return d.error_of(loaded, what);
  module.refused =
      d.words_of(loaded, what) + (loaded == CuResult::no_binary_for_gpu ? "; this build has no code for '" + device.name + "'"
                                  : loaded == CuResult::jit_compilation_disabled
                                      ? "; the environment (CUDA_DISABLE_PTX_JIT) keeps the driver from compiling them"
                                      : "; the driver '" + device.driver + "' cannot compile them, install a newer one");
  return absent();
}

size_t Functions::modules_loaded() {
  const std::lock_guard lock(mutex_);
  return static_cast<size_t>(
      std::count_if(modules_.begin(), modules_.end(), [](const Module& m) { return m.handle != nullptr; }));
}

Result<CuFunction> Functions::get(const std::string& name, int64_t shared_bytes, bool large_cluster) {
  if (!context_) return CuFunction{};
  const Driver& d = context_->driver();
  const Current current(*context_);
  const std::lock_guard lock(mutex_);
  const auto none = [&] { return Error{Reason::backend_lacks_variant, "this build has no CUDA kernel '" + name + "'"}; };
  Module* const module = module_of(name);
  if (!module) return none();
  SPARKLE_CHECK(load(*module, name));
  Found& found = found_[name];
  if (!found.function) {
    const CuResult result = d.module_function(&found.function, module->handle, name.c_str());
    if (result == CuResult::not_found) return none();
    SPARKLE_CU(d, result, "cuModuleGetFunction of " + name);
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
