// The methods of the protocol over gRPC, each a function from a message's bytes to an answer's; no connection is known here.
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "serve/service.h"

namespace sparkle::serve {

struct MethodAnswer {
  grpc::Status status;
  grpc::ByteBuffer message;
  std::string model, version;  // for the log
  std::optional<Failure> failure;
};

MethodAnswer refused_answer(const Refusal& refusal);

struct Method {
  std::string_view name;            // "/inference.GRPCInferenceService/ModelInfer"
  bool is_infer = false;            // may have as many bytes as requests may; others have 64 KiB
  bool needs_token = true;          // all but health
  const char* not_there = nullptr;  // why it is not answered
  MethodAnswer (*answer)(Service&, std::string_view message, Clock::time_point deadline) = nullptr;
};
inline constexpr uint64_t kMostSmallBytes = 65536;

// Nothing where the name is none of them.
const Method* find_method(std::string_view name);

}  // namespace sparkle::serve
