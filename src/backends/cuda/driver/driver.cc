#include "backends/cuda/driver/driver.h"

#include <cstdlib>

#if defined(__unix__)
#include <dlfcn.h>
#endif

namespace sparkle::cuda {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";

std::string version_text(int version) { return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10); }

Error unusable(const std::string& why) { return {Reason::device_unusable, "CUDA cannot be used: " + why + "."}; }

}  // namespace

Result<std::shared_ptr<Driver>> Driver::open(int least) {
  std::shared_ptr<Driver> driver(new Driver);
  SPARKLE_CHECK(driver->load());
  if (const CuResult r = driver->init(0); r != CuResult::success)
    return r == CuResult::no_device ? unusable("the driver '" + driver->path_ + "' finds no NVIDIA device")
                                    : driver->error_of(r, "cuInit");
  SPARKLE_CU(*driver, driver->driver_version(&driver->version_), "cuDriverGetVersion");
  if (driver->version_ < least)
    return unusable("the driver is of CUDA " + version_text(driver->version_) + ", and " + version_text(least) +
                    " is needed; install a newer one");
  SPARKLE_CHECK(driver->find_compiler());
  SPARKLE_CHECK(driver->find_devices());
  return driver;
}

// The library stays loaded: drivers have threads of their own.
Driver::~Driver() = default;

Status Driver::load() {
#if defined(__unix__)
  const char* other = std::getenv("SPARKLE_CUDA_DRIVER");
  path_ = other && *other ? other : kLibrary;
  library_ = ::dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library_) {
    const char* why = ::dlerror();
    return unusable("the driver's library '" + path_ + "' cannot be opened" + (why ? " (" + std::string(why) + ")" : ""));
  }
  is_model_ = ::dlsym(library_, "cuda_model_counts") != nullptr;
  std::string missing;
#define CU_FUNCTION(member, symbol, parameters)                                 \
  member = reinterpret_cast<CuResult(*) parameters>(::dlsym(library_, symbol)); \
  if (!member && missing.empty()) missing = symbol;
#define CU_NEWER_FUNCTION(member, symbol, parameters) \
  member = reinterpret_cast<CuResult(*) parameters>(::dlsym(library_, symbol));
#include "backends/cuda/driver/cu_functions.inc"
#undef CU_FUNCTION
  if (!missing.empty()) return unusable("the library '" + path_ + "' has no " + missing + "; install a newer driver");
  return ok();
#else
  return unusable("this system has no " + std::string(kLibrary));
#endif
}

// A stand-in for the driver reads no PTX that was not made for it.
Status Driver::find_compiler() {
  SPARKLE_TRY(found, find_nvrtc(version_, path_ != kLibrary));
  compiler_ = std::move(found);
  return ok();
}

Status Driver::find_devices() {
  int count = 0;
  SPARKLE_CU(*this, device_count(&count), "cuDeviceGetCount");
  if (count == 0) return unusable("the driver finds no NVIDIA device");
  for (int i = 0; i < count; ++i) {
    DeviceInfo device;
    SPARKLE_CU(*this, device_get(&device.handle, i), "cuDeviceGet");
    device.driver = "CUDA " + version_text(version_);
    SPARKLE_CHECK(describe(*this, device));
    if (compiler_.nvrtc && compiler_.nvrtc->architecture(device.capability) > 0) {
      device.description.compiles = true;
      device.id += "_nvrtc" + std::to_string(compiler_.nvrtc->version());
    }
    devices_.push_back(std::move(device));
  }
  return ok();
}

std::string Driver::words_of(CuResult result, std::string_view what) const {
  const char *name = nullptr, *text = nullptr;
  if (error_name) error_name(result, &name);
  if (error_text) error_text(result, &text);
  return std::string(what) + " said " + (name ? name : "CUresult " + std::to_string(static_cast<int>(result))) +
         (text ? ", " + std::string(text) : "");
}

Error Driver::error_of(CuResult result, std::string_view what) const {
  const std::string said = words_of(result, what);
  if (result == CuResult::out_of_memory)
    return {Reason::out_of_memory, "The CUDA device is out of memory (" + said + "); give smaller inputs or use --device cpu."};
  if (is_lost(result))
    return {Reason::device_lost, "The CUDA device stopped answering (" + said + "); start again, or use --device cpu."};
  return {Reason::device_unusable, "The CUDA device cannot be used: " + said + "; use --device cpu."};
}

}  // namespace sparkle::cuda
