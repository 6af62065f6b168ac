// Why a request was not answered with tensors, in terms of no transport: HTTP makes a status of it, as gRPC would.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"

namespace sparkle::serve {

enum class Failure : uint8_t {
  invalid,         // the request is at fault
  unauthorised,    // no token, or another one
  forbidden,       // a page of another origin asks
  unknown,         // no such model, version or path
  wrong_method,    // the path takes another one
  length_missing,  // a body whose length is not told
  too_large,       // more bytes than are taken
  encoding,        // a compressed body
  queue_full,      // come again later
  internal,        // the model failed, and the request is not known to be at fault
  unavailable,     // stopping, or out of memory, or the device is lost
  too_late,        // its time was over
};
inline constexpr int kFailures = static_cast<int>(Failure::too_late) + 1;

struct Refusal {
  Failure failure = Failure::internal;
  std::string message;
};

// Of what the protocol's extensions have and this server has not, over either transport.
inline constexpr const char* kNoSharedMemory = "Tensors in shared memory are not supported; send them with the request.";
inline constexpr const char* kNoSettings =
    "Settings are not changed while the server runs; 'sparkle serve --help' lists those of its start.";

// What a status of the library means to who asked.
inline Refusal refusal_of(const Error& error) {
  switch (error.reason) {
    case Reason::bad_usage:
    case Reason::bad_format:
    case Reason::bad_shape:
    case Reason::bad_input:
    case Reason::size_overflow:
    case Reason::operator_not_served:
    case Reason::type_not_served: return {Failure::invalid, error.message};
    case Reason::over_memory_budget:
    case Reason::out_of_memory:
    case Reason::device_lost:
    case Reason::device_unusable: return {Failure::unavailable, error.message};
    default: return {Failure::internal, error.message};
  }
}

}  // namespace sparkle::serve
