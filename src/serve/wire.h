// Encoded messages looked over before they are parsed. Two bytes can make a parser allocate a hundred: the number of records is
// bounded first. Tensors are left where they are.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sparkle::serve {

struct InferParts {
  std::string head;                   // the request without its tensors of raw bytes
  std::vector<std::string_view> raw;  // these, in the message's memory
};
// Takes a ModelInferRequest apart. Returns a sentence where it is none, or has more records than any request needs.
std::string split_infer_request(std::string_view bytes, InferParts& parts);

// Ends a message with a field of bytes, whose contents follow: its number and length.
std::string bytes_field(int number, uint64_t length);

}  // namespace sparkle::serve
