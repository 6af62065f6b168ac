// A request of the protocol as the parser of JSON goes over it, without a tree of it in memory: a value of "data" goes where
// the tensor has it. A tensor whose "data" stands before its name, type or shape is filled when the text is gone over once
// more.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/protocol.h"

namespace sparkle::serve {

struct GivenInput {
  std::string name, datatype;
  bool named = false, typed = false, shaped = false, has_data = false, filled = false;
  std::vector<int64_t> shape;
  std::optional<uint64_t> binary_bytes;
  size_t index = 0;  // of the model's inputs, once it is checked
  HostTensor tensor;

  bool known() const { return named && typed && shaped; }
};
struct GivenOutput {
  std::string name;
  bool named = false;
  std::optional<bool> binary;
  int64_t classes = 0;  // of the classification extension
};
struct GivenRequest {
  std::vector<GivenInput> inputs;
  std::vector<GivenOutput> outputs;
  std::string id;
  bool binary_output = false, has_inputs = false, has_outputs = false;
  int64_t timeout_us = 0;
};

// Tensors of inputs whose data are in the text are made and filled; those of others are left to make_tensor(). Errors:
// bad_format, bad_input naming the input, size_overflow, out_of_memory.
Result<GivenRequest> read_request(const ModelDescription& model, std::string_view text);

// Finds the model's input and makes the tensor, of `budget` elements at most, which it takes from it.
Status make_tensor(const ModelDescription& model, GivenInput& given, uint64_t& budget);

// "'a', 'b'", and a name from outside.
std::string names_of(const std::vector<SessionInput>& tensors);
std::string in_quotes(const std::string& name);

}  // namespace sparkle::serve
