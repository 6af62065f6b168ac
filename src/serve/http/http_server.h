// HTTP 1.1 on a port: heads are read by the HTTP library, with bounds of our own on bytes, time and connections; what they ask
// for is answered by functions that know no socket.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "serve/request_record.h"
#include "serve/router.h"

namespace sparkle::serve {

struct HttpOptions {
  std::string certificate, key;                     // PEM, for TLS; empty: nothing is encrypted
  int most_connections = 256;                       // one more is told to come again
  uint64_t most_bytes_at_once = uint64_t{1} << 30;  // of bodies, all requests together
  std::function<std::optional<Reply>(const Call&, uint64_t body_bytes)> refuse_early;
  std::function<Reply(const Call&, std::string body)> answer;
  std::function<void(const RequestRecord&)> log;  // may be empty; called by several threads at once
};

class HttpServer {
 public:
  explicit HttpServer(HttpOptions options);
  ~HttpServer();
  // The port, which is any free one where 0 is asked for. Errors: bad_usage, also for what the certificate lacks.
  Result<int> bind(const std::string& host, int port);
  // Answers until stop(); returns when all that was accepted is answered.
  void run();
  // No new connection and no new request from here on.
  void stop();

 private:
  class Listener;
  std::unique_ptr<Listener> listener_;
};

}  // namespace sparkle::serve
