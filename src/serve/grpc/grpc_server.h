// gRPC on a port, as the command sees it: the code behind it lies in a library of its own (libsparkle_grpc.so), which the
// command opens where it serves, since gRPC is larger than all of Sparkle.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "serve/request_record.h"
#include "serve/service.h"

namespace sparkle::serve {

struct GrpcOptions {
  std::string host;
  int port = 0;                                     // 0: any free one
  std::string certificate, key;                     // PEM; empty: nothing is encrypted
  int most_calls = 256;                             // under way; one more is told to come again
  uint64_t most_bytes = uint64_t{64} << 20;         // of a request
  uint64_t most_bytes_at_once = uint64_t{1} << 30;  // of requests, all together
  std::function<void(const RequestRecord&)> log;    // may be empty; called by several threads at once
};

class GrpcServer {
 public:
  virtual ~GrpcServer() = default;
  virtual int port() const = 0;
  // No new request from here on; returns when all that was accepted is answered.
  virtual void stop() = 0;
};

// What the library gives by the name `sparkle_grpc_door`. `start` answers from its return on. Errors: bad_usage.
struct GrpcDoor {
  Result<std::unique_ptr<GrpcServer>> (*start)(GrpcOptions options, Service& service);
};

}  // namespace sparkle::serve
