// libFuzzer: any bytes as a request for inference over gRPC. What is taken apart lies in the message, and has all of its bytes
// but the heads of the raw tensors' fields.
#include <cstdlib>

#include "serve/wire.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  sparkle::serve::InferParts parts;
  const std::string wrong = sparkle::serve::split_infer_request(bytes, parts);
  if (wrong.size() > 4096) std::abort();
  if (!wrong.empty()) return 0;
  size_t sum = parts.head.size();
  for (const std::string_view raw : parts.raw) {
    if (raw.data() < bytes.data() || raw.data() + raw.size() > bytes.data() + bytes.size()) std::abort();
    sum += raw.size();
  }
  if (sum > size) std::abort();
  // The head has no raw tensors, and is taken apart into itself.
  sparkle::serve::InferParts again;
  if (!sparkle::serve::split_infer_request(parts.head, again).empty() || again.head != parts.head || !again.raw.empty())
    std::abort();
  return 0;
}
