// Nvrtc: NVIDIA's compiler of CUDA C++ as a library, opened at run time where it is. SPARKLE_NVRTC in the environment names
// another library with the same functions: the functional model's of the tests.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace sparkle::cuda {

using NvrtcProgram = struct NvrtcProgramHandle*;
// What calls return. Results that are not named here are errors like any other.
enum class NvrtcResult : int { success = 0, compilation = 6 };

class Nvrtc {
 public:
  // Errors: device_unusable where the library cannot be opened or lacks a function, saying which.
  static Result<std::shared_ptr<Nvrtc>> open(const std::string& library);
  ~Nvrtc();
  Nvrtc(const Nvrtc&) = delete;
  Nvrtc& operator=(const Nvrtc&) = delete;

  int version() const { return version_; }  // 13050: of CUDA 13.5, as drivers tell theirs
  std::string name() const;                 // "NVRTC 13.5"
  // The newest architecture that it compiles for and a device of this compute capability runs: 80. 0: there is none.
  int architecture(int capability) const;
  // Options besides the architecture: part of what a compiled text depends on.
  static std::string options();
  // PTX of a text for an architecture; the text's includes are program_headers(). Errors: internal with the log's first line
  // where the text does not compile, device_unusable where the library fails otherwise.
  Result<std::string> compile(const std::string& text, int architecture) const;

#define NVRTC_FUNCTION(member, symbol, parameters) NvrtcResult(*member) parameters = nullptr;
#include "backends/cuda/nvrtc/nvrtc_functions.inc"
#undef NVRTC_FUNCTION
  const char* (*error_text)(NvrtcResult result) = nullptr;

 private:
  explicit Nvrtc(std::string path) : path_(std::move(path)) {}
  Status load();
  Error failed(NvrtcResult result, std::string_view what) const;

  std::string path_;
  void* library_ = nullptr;
  int version_ = 0;
  std::vector<int> architectures_;
};

// The library for a driver of this version, found by its usual names or by what SPARKLE_NVRTC says; none, where that is empty
// or where `stand_in` takes the driver's place. PTX that is newer than the driver is of no use.
struct FoundNvrtc {
  std::shared_ptr<Nvrtc> nvrtc;  // nullptr: there is none
  std::string why_not;           // of one that is there and cannot be used
};
// Errors: device_unusable where the library that SPARKLE_NVRTC names cannot be used.
Result<FoundNvrtc> find_nvrtc(int driver_version, bool stand_in);

}  // namespace sparkle::cuda
