// ONNX Runtime's C interface, its library opened at run time. The interface is a table of functions that only ever grows at its
// end: the places of those used here are all of its first versions, so no header is needed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "peers/library.h"

namespace sparkle::cli {

class OnnxRuntime {
 public:
  enum Place {
    kGetErrorMessage = 2,
    kCreateEnv = 3,
    kCreateSession = 7,
    kCreateSessionFromArray = 8,
    kRun = 9,
    kCreateSessionOptions = 10,
    kSetSessionLogSeverityLevel = 22,
    kSetSessionGraphOptimizationLevel = 23,
    kSetIntraOpNumThreads = 24,
    kCreateTensorWithDataAsOrtValue = 49,
    kIsTensor = 50,
    kGetTensorMutableData = 51,
    kGetTensorElementType = 60,
    kGetDimensionsCount = 61,
    kGetDimensions = 62,
    kGetTensorTypeAndShape = 65,
    kCreateCpuMemoryInfo = 69,
    kReleaseStatus = 93,
    kReleaseSession = 95,
    kReleaseValue = 96,
    kReleaseTensorTypeAndShapeInfo = 99,
    kReleaseSessionOptions = 100,
    kAddSessionConfigEntry = 130,
  };
  static constexpr int kNoOptimisation = 0, kAllOptimisations = 99;

  // `threads`: of each session's pool. Errors: device_unusable where the library is none, or too old.
  static Result<std::shared_ptr<OnnxRuntime>> open(const std::string& file, int threads);
  const std::string& version() const { return version_; }

  // A function of the table that returns a status; an Error of code internal "ONNX Runtime cannot DOING: ...".
  template <class... Arguments>
  Status call(Place place, const char* doing, Arguments... arguments) const {
    void* status = reinterpret_cast<void* (*)(Arguments...)>(const_cast<void*>(table_[place]))(arguments...);
    if (!status) return ok();
    const std::string said = function<const char*(const void*)>(kGetErrorMessage)(status);
    release(kReleaseStatus, status);
    return Error{Reason::internal, "ONNX Runtime cannot " + std::string(doing) + ": " + said};
  }
  void release(Place place, void* what) const {
    if (what) function<void(void*)>(place)(what);
  }
  // Of a model's bytes, or of a file where external data lies beside it.
  Status session(const std::string& model, int optimisation, void** session) const;
  Status session_of_file(const std::string& path, int optimisation, void** session) const;
  // A tensor on memory of the caller's. `type`: ONNX's number of the element type.
  Status tensor(void* memory, size_t bytes, const std::vector<int64_t>& shape, int type, void** value) const;

 private:
  template <class F>
  F* function(Place place) const {
    return reinterpret_cast<F*>(const_cast<void*>(table_[place]));
  }
  template <class Make>
  Status with_options(int optimisation, const Make& make) const;

  std::shared_ptr<Library> library_;
  const void* const* table_ = nullptr;
  void* environment_ = nullptr;  // lives as long as the program, like the library
  void* memory_ = nullptr;
  std::string version_;
  int threads_ = 1;
};

}  // namespace sparkle::cli
