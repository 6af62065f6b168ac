// What the exported functions share: each call is one at a time, fails where a test has asked for it, and is told of what
// others own.
#pragma once

#include <algorithm>

#include "model_driver.h"

namespace cuda_model::driver {

// Every call: one at a time, failing where a test has asked for it, and where the context is lost. `context`: needs one.
struct Call {
  Driver& driver = Driver::get();
  std::lock_guard<std::mutex> lock{driver.mutex};
  Context* context = nullptr;
  CuResult result = CuResult::success;

  Call(const char* symbol, bool needs_context) {
    if (!driver.fail_symbol.empty() && driver.fail_symbol == symbol) {
      driver.fail_symbol.clear();
      result = driver.fail_result;
      return;
    }
    if (!driver.initialized) {
      result = CuResult::not_initialized;
      return;
    }
    context = driver.current();
    if (!needs_context) return;
    if (!context) {
      tell(std::string(symbol) + " without a context");
      result = CuResult::invalid_context;
    } else {
      result = context->lost;
    }
  }
  bool failed() const { return result != CuResult::success; }
};

inline bool owns(const Context& context, const Stream* stream) {
  const bool own =
      std::any_of(context.streams.begin(), context.streams.end(), [&](const auto& s) { return s.get() == stream; });
  if (!own) tell("a stream of another context, or one that is gone");
  return own;
}
inline bool owns(const Context& context, const Event* event) {
  const bool own = std::any_of(context.events.begin(), context.events.end(), [&](const auto& e) { return e.get() == event; });
  if (!own) tell("an event of another context, or one that is gone");
  return own;
}
template <class T>
T* real(void* handle) {
  return static_cast<T*>(handle);
}
// 0: the context's default stream.
inline Stream* of(Context& context, CuStream stream) {
  if (stream) return real<Stream>(stream);
  if (!context.default_stream) {
    context.default_stream = context.streams.emplace_back(std::make_unique<Stream>()).get();
    context.default_stream->owner = &context;
  }
  return context.default_stream;
}
#define MODEL_CALL(symbol, needs_context) \
  Call call(symbol, needs_context);       \
  if (call.failed()) return call.result
#define MODEL_NEEDS(condition, result_otherwise) \
  do {                                           \
    if (!(condition)) return result_otherwise;   \
  } while (false)
// Of CUDA; SPARKLE_CUDA_MODEL_VERSION in the environment is another.
int driver_version();

}  // namespace cuda_model::driver

#define EXPORT extern "C" __attribute__((visibility("default"))) CuResult
