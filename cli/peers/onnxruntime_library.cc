#include "peers/onnxruntime_library.h"

namespace sparkle::cli {
namespace {

constexpr uint32_t kInterfaceVersion = 11;  // the first that has all these places, with room
constexpr int kErrorsOnly = 3, kArenaAllocator = 1, kDefaultMemory = 0;

struct Base {
  const void* const* (*table)(uint32_t version);
  const char* (*version)();
};

}  // namespace

Result<std::shared_ptr<OnnxRuntime>> OnnxRuntime::open(const std::string& file, int threads) {
  SPARKLE_TRY(library, Library::open("onnxruntime", file));
  const Base* (*base)() = nullptr;
  SPARKLE_CHECK(library->find(base, "OrtGetApiBase"));
  auto runtime = std::make_shared<OnnxRuntime>();
  runtime->library_ = std::move(library);
  runtime->version_ = base()->version();
  runtime->table_ = base()->table(kInterfaceVersion);
  runtime->threads_ = threads;
  if (!runtime->table_)
    return Error{Reason::device_unusable, "The ONNX Runtime " + runtime->version_ + " of '" + file + "' is too old."};
  SPARKLE_CHECK(runtime->call(kCreateEnv, "start", kErrorsOnly, "sparkle", &runtime->environment_));
  SPARKLE_CHECK(runtime->call(kCreateCpuMemoryInfo, "start", kArenaAllocator, kDefaultMemory, &runtime->memory_));
  return runtime;
}

template <class Make>
Status OnnxRuntime::with_options(int optimisation, const Make& make) const {
  void* options = nullptr;
  SPARKLE_CHECK(call(kCreateSessionOptions, "take options", &options));
  const auto made = [&]() -> Status {
    SPARKLE_CHECK(call(kSetSessionLogSeverityLevel, "take options", options, kErrorsOnly));
    SPARKLE_CHECK(call(kSetSessionGraphOptimizationLevel, "take options", options, optimisation));
    SPARKLE_CHECK(call(kSetIntraOpNumThreads, "take options", options, threads_));
    SPARKLE_CHECK(call(kAddSessionConfigEntry, "flush denormals", options, "session.set_denormal_as_zero", "1"));
    return make(options);
  }();
  release(kReleaseSessionOptions, options);
  return made;
}

Status OnnxRuntime::session(const std::string& model, int optimisation, void** session) const {
  return with_options(optimisation, [&](void* options) {
    return call(kCreateSessionFromArray, "load the model", environment_, model.data(), model.size(), options, session);
  });
}

Status OnnxRuntime::session_of_file(const std::string& path, int optimisation, void** session) const {
  return with_options(optimisation, [&](void* options) {
    return call(kCreateSession, "load the model", environment_, path.c_str(), options, session);
  });
}

Status OnnxRuntime::tensor(void* memory, size_t bytes, const std::vector<int64_t>& shape, int type, void** value) const {
  return call(kCreateTensorWithDataAsOrtValue, "use memory", memory_, memory, bytes, shape.data(), shape.size(), type, value);
}

}  // namespace sparkle::cli
