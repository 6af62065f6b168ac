// The endpoints of the protocol over HTTP, without a socket: a call becomes a reply.
#pragma once

#include <optional>
#include <string>

#include "serve/model_service.h"

namespace sparkle::serve {

struct RouterOptions {
  uint64_t most_bytes = uint64_t{64} << 20;  // of a request's body
  bool local_names = false;                  // takes calls by names of this machine alone
};

// What of a request's head matters.
struct Call {
  std::string method, path;
  std::string authorization, origin, host, content_encoding;
  std::optional<std::string> json_bytes;  // Inference-Header-Content-Length
};

struct Reply {
  int status = 200;
  std::string type = "application/json", body;
  std::optional<size_t> json_bytes;  // where binary tensors follow them
  std::string allow;                 // methods that the path takes, where it was another
  std::string model, version;        // for the log
  std::optional<Failure> failure;
};

Reply refusal_reply(const Refusal& refusal);

class Router {
 public:
  Router(ModelService& service, RouterOptions options) : service_(service), options_(options) {}

  // What is refused by its head alone, before its body is read.
  std::optional<Reply> refuse_early(const Call& call, uint64_t body_bytes) const;
  // The body is let go once it is read: a request that waits holds its tensors alone.
  Reply answer(const Call& call, std::string body) const;
  // GET /metrics alone, for a port of its own.
  Reply answer_metrics(const Call& call) const;

 private:
  Reply infer(const Call& call, const std::string& name, const std::string& version, std::string body) const;
  Reply about_model(const std::string& name, const std::string& version, const std::string& what) const;
  Reply report(const std::string& name, const std::string& version, bool measure, bool as_page) const;
  Reply control(const std::string& name, const std::string& what, const std::string& body) const;

  ModelService& service_;
  const RouterOptions options_;
};

// The page at /: models, their requests and latencies.
std::string status_page(const std::string& version, const Repository& repository);

}  // namespace sparkle::serve
