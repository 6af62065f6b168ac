// One request of any transport, for the log.
#pragma once

#include <optional>
#include <string>

#include "serve/failure.h"

namespace sparkle::serve {

// As HTTP has it.
inline int http_status(Failure failure) {
  switch (failure) {
    case Failure::invalid: return 400;
    case Failure::unauthorised: return 401;
    case Failure::forbidden: return 403;
    case Failure::unknown: return 404;
    case Failure::wrong_method: return 405;
    case Failure::length_missing: return 411;
    case Failure::too_large: return 413;
    case Failure::encoding: return 415;
    case Failure::queue_full: return 429;
    case Failure::internal: return 500;
    case Failure::unavailable: return 503;
    case Failure::too_late: return 504;
  }
  return 500;
}

struct RequestRecord {
  std::string client, method, path;
  int status = 0;  // of HTTP; gRPC's failures by the same numbers
  uint64_t bytes_in = 0, bytes_out = 0;
  double seconds = 0;
  std::string model, version;
  std::optional<Failure> failure;
};

}  // namespace sparkle::serve
