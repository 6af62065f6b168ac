// What the handles of sparkle.h are, and how errors and exceptions leave the library: as a status and a sentence.
#pragma once

#include <atomic>
#include <exception>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/tensor.h"
#include "run/evaluate/evaluate_expression.h"
#include "run/opening/open_backend.h"
#include "run/opening/open_model.h"
#include "sparkle/sparkle.h"

struct sparkle_device {
  explicit sparkle_device(std::shared_ptr<sparkle::Backend> opened, sparkle::BackendOptions by = {},
                          std::vector<sparkle::FallbackEvent> of_opening = {})
      : backend(opened), expressions(std::move(opened)), options(std::move(by)), events(std::move(of_opening)) {}
  std::shared_ptr<sparkle::Backend> backend;
  sparkle::ExpressionRunner expressions;
  sparkle::BackendOptions options;             // that it was opened by
  std::vector<sparkle::FallbackEvent> events;  // of that
};
struct sparkle_session {
  std::shared_ptr<sparkle::Session> session;
  sparkle::FileStamp onnx;  // that it was opened of; no path where it came from memory or was compiled
  bool compiled = false;
  double accuracy = 0;
  std::map<std::string, std::string> metadata;  // of a model in memory; a file's is read where it is asked for
};
struct sparkle_value {
  sparkle::HostTensor tensor;
};
struct sparkle_buffer {
  std::shared_ptr<sparkle::Backend> backend;
  std::shared_ptr<sparkle::Buffer> buffer;
  std::atomic<uint64_t> last_token{0};  // of the work submitted last that uses it
};

namespace sparkle::api {

// Remembers the sentence for sparkle_last_error() and gives the status of its reason.
sparkle_status fail(const Error& error);
inline sparkle_status fail(Reason reason, std::string sentence) { return fail(Error{reason, std::move(sentence)}); }

// Calls `body`, which returns a Status; nothing thrown inside crosses the border.
template <class Body>
sparkle_status guarded(Body&& body) noexcept {
  try {
    Status status = body();
    return status.ok() ? SPARKLE_OK : fail(status.error());
  } catch (const std::bad_alloc&) {
    return fail(Reason::out_of_memory, "An allocation failed.");
  } catch (const std::length_error&) {
    return fail(Reason::size_overflow, "A size exceeds what can be addressed.");
  } catch (const std::exception& e) {
    return fail(Reason::internal, std::string("An assumption did not hold: ") + e.what() + "; please report it.");
  }
}

// bad_usage unless the caller's structure has today's size.
Status check_size(const char* structure, size_t given, size_t wanted);
Result<BackendOptions> backend_options(const sparkle_device_options* given);
// "forbid", "warn", "allow", or NULL: warn. Errors: bad_usage.
Result<Fallback> fallback_of(const char* text);

// What the caller asks of a session, defaults where it is NULL. Errors: bad_usage, type_not_served; those of its tuning file.
Result<SessionOptions> session_options(const sparkle_session_options* given, const Device& device);

// A copy for the caller, released by sparkle_string_free.
char* new_text(const std::string& text);

// The caller's memory as tensors, not copied. Errors: bad_usage for what is not a tensor.
Result<std::vector<HostTensor>> borrow(const sparkle_tensor* tensors, size_t count, const char* what);
// Shapes of inputs by name. Errors: bad_usage for a name that is NULL; those of borrow().
Result<std::vector<std::pair<std::string, Dims>>> named_shapes(const char* const* names, const sparkle_tensor* shapes,
                                                               size_t count);
sparkle_tensor describe(const TensorDesc& desc, void* data);
// bad_usage and bad_input where what the caller gives for a model's outputs is not what they are.
Status same_count(size_t given, size_t wanted, const char* what);
Status same_tensor(size_t output, const TensorDesc& want, const HostTensor& place);

}  // namespace sparkle::api
