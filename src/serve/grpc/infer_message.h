// ModelInferRequest and ModelInferResponse as bytes, to and from what the service takes and gives.
#pragma once

#include "inference.pb.h"
#include "serve/wire.h"
#include "serve/service.h"

namespace sparkle::serve {

// A call whose tensors lie in the message's bytes, or in what was parsed from them.
struct ParsedInfer {
  InferCall call;
  ::inference::ModelInferRequest message;
  std::vector<std::string> narrowed;  // contents of less than 32 bits
};
// False where the bytes are no request at all; else what is wrong stands in `call.refused`. `unsupported` says of that whether
// no request of the kind can be answered.
bool parse_infer_message(std::string_view bytes, ParsedInfer& parsed, bool& unsupported);

// The answer but for its tensors' bytes, which follow as fields of their own (kRawOutputs), in order.
std::string infer_answer_head(const InferCall& call, const InferReply& reply);
inline constexpr int kRawOutputs = 6;

}  // namespace sparkle::serve
