// Driver: libcuda.so.1 opened at run time, and its devices. SPARKLE_CUDA_DRIVER in the environment names another library with
// the same functions: the functional model of the tests.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/cuda/driver/cu.h"
#include "backends/cuda/nvrtc/nvrtc.h"
#include "base/result.h"
#include "device/device.h"

namespace sparkle::cuda {

// A device of the driver's.
struct DeviceInfo {
  CuDevice handle = 0;
  std::string name, driver;  // "NVIDIA H200", "CUDA 13.0"
  std::string id;            // of the device and its driver: key of caches on disk
  std::string unusable;      // why it is; empty: it may be used
  int capability = 0;        // 90: compute capability 9.0
  Device description;        // as data sheets have it where rates are not measured
};

class Driver {
 public:
  // Errors: device_unusable where there is no library, no driver of version `least` (12000: CUDA 12.0) or no device, saying
  // which.
  static Result<std::shared_ptr<Driver>> open(int least);
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  const std::vector<DeviceInfo>& devices() const { return devices_; }
  int version() const { return version_; }
  // Whether it is the functional model of the tests, which computes as a card does and takes its own time.
  bool is_model() const { return is_model_; }
  // "cuMemAlloc said CUDA_ERROR_..., and its text".
  std::string words_of(CuResult result, std::string_view what) const;
  // What compiles programs that come with a model; its `nvrtc` is nullptr where there is none.
  const FoundNvrtc& compiler() const { return compiler_; }
  // An error of the reason that fits the result: out_of_memory, device_lost or device_unusable. `what`: "cuMemAlloc".
  Error error_of(CuResult result, std::string_view what) const;

#define CU_FUNCTION(member, symbol, parameters) CuResult(*member) parameters = nullptr;
#include "backends/cuda/driver/cu_functions.inc"
#undef CU_FUNCTION

 private:
  Driver() = default;
  Status load();
  Status find_compiler();
  Status find_devices();

  void* library_ = nullptr;
  std::string path_;
  int version_ = 0;
  bool is_model_ = false;
  FoundNvrtc compiler_;
  std::vector<DeviceInfo> devices_;
};

// Fills what the driver says of a device; its handle is set.
Status describe(const Driver& driver, DeviceInfo& device);

// SPARKLE_CU(driver, call, "what"): returns the error of a call that did not succeed.
#define SPARKLE_CU(driver, call, what)                                                                   \
  do {                                                                                                   \
    if (const ::sparkle::cuda::CuResult result_ = (call); result_ != ::sparkle::cuda::CuResult::success) \
      return (driver).error_of(result_, what);                                                           \
  } while (false)

}  // namespace sparkle::cuda
