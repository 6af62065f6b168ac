// For tests of the CUDA backend: the functional model in the place of a driver, what it says of itself, and a backend over it.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "backends/cuda/cuda_backend.h"
#include "base/system/thread_pool.h"

namespace sparkle::cuda {

// An environment variable for as long as this lives.
class With {
 public:
  With(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    ::setenv(name, value.c_str(), 1);
  }
  ~With() { before_.empty() ? ::unsetenv(name_) : ::setenv(name_, before_.c_str(), 1); }
  With(const With&) = delete;
  With& operator=(const With&) = delete;

 private:
  const char* name_;
  std::string before_;
};

// Tests run in the model, whatever card there is.
inline const With in_the_model("SPARKLE_CUDA_DRIVER", SPARKLE_CUDA_MODEL);

// A function of the model's own.
template <class F>
F* model_function(const char* name) {
  static void* const library = ::dlopen(SPARKLE_CUDA_MODEL, RTLD_NOW);
  return reinterpret_cast<F*>(::dlsym(library, name));
}
// The next call of `symbol` fails.
inline void fail_next(const char* symbol, CuResult result) {
  model_function<void(const char*, int)>("cuda_model_fail_next")(symbol, static_cast<int>(result));
}
struct ModelCounts {
  unsigned long long launches = 0, graph_launches = 0, copies = 0, graphs = 0, allocations = 0, early_launches = 0;
};
inline ModelCounts model_counts() {
  ModelCounts counts;
  model_function<void(unsigned long long*)>("cuda_model_counts")(&counts.launches);
  return counts;
}

// `options` keeps nothing on disk.
inline std::shared_ptr<CudaBackend> test_backend(MakeKernel make = make_kernel, CudaOptions options = {}) {
  options.cache = false;
  auto driver = Driver::open(12000);
  if (!driver.ok()) {
    ADD_FAILURE() << driver.error().message;
    return nullptr;
  }
  auto backend = make_cuda_backend(*driver, 0, options, std::make_shared<InlineExecutor>(), std::move(make));
  if (!backend.ok()) {
    ADD_FAILURE() << backend.error().message;
    return nullptr;
  }
  return *backend;
}

// Bytes to and from device memory.
inline std::shared_ptr<Buffer> uploaded(CudaBackend& backend, const void* bytes, int64_t size) {
  auto staging = *backend.allocate(std::max<int64_t>(size, 1), MemoryKind::staging);
  auto buffer = *backend.allocate(std::max<int64_t>(size, 1), MemoryKind::device);
  std::memcpy(staging->host(), bytes, static_cast<size_t>(size));
  const CopyRegion region{staging.get(), 0, buffer.get(), 0, size};
  const auto token = backend.copy({&region, 1}, {});
  EXPECT_TRUE(token.ok() && backend.wait(*token).ok());
  return buffer;
}
inline void download(CudaBackend& backend, Buffer& from, void* bytes, int64_t size) {
  auto staging = *backend.allocate(std::max<int64_t>(size, 1), MemoryKind::staging);
  const CopyRegion region{&from, 0, staging.get(), 0, size};
  const auto token = backend.copy({&region, 1}, {});
  ASSERT_TRUE(token.ok() && backend.wait(*token).ok());
  std::memcpy(bytes, staging->host(), static_cast<size_t>(size));
}

}  // namespace sparkle::cuda
