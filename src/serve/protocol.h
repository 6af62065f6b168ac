// The Open Inference Protocol (version 2) as pure functions on bytes: requests become tensors that fit the model, tensors
// become answers, in JSON and with its extension for binary tensors. No transport is known here.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/tensor.h"
#include "prepare/model_inputs.h"

namespace sparkle::serve {

// What clients are told of a model, and what requests are held to.
struct ModelDescription {
  std::string name, version;
  std::vector<SessionInput> inputs, outputs;
  std::shared_ptr<const std::vector<std::string>> labels = nullptr;  // of classes, by their numbers, where the file has some
  // Of a model whose input is a picture with an axis of rows, which its outputs have too: how many rows a configuration tells
  // clients that a request may have. 0: it is none.
  int64_t picture_rows = 0;
  bool channels_last = false;  // of that picture
};

struct WantedOutput {
  size_t index = 0;  // of the model's outputs
  bool binary = false;
  int64_t classes = 0;  // as so many texts of its largest values; 0: itself
};

struct InferRequest {
  std::string id;
  std::vector<HostTensor> inputs;  // one for each of the model's, in its order
  std::vector<WantedOutput> outputs;
  int64_t timeout_us = 0;  // 0: the server's
};

// `json_bytes`: how many of the body's bytes are JSON, where tensors follow it; nothing: all. Names, types, shapes and sizes
// are held against the model and against the bytes that came before memory is taken for a tensor. Errors: bad_input,
// bad_format, size_overflow, type_not_served, out_of_memory.
Result<InferRequest> parse_infer(const ModelDescription& model, std::string_view body, std::optional<size_t> json_bytes);

// A tensor as a client sent it: elements as they lie in memory, row by row.
struct GivenTensor {
  std::string name, datatype;
  std::vector<int64_t> shape;
  std::string_view bytes;
};
struct AskedOutput {
  std::string name;
  int64_t classes = 0;
};
// The same for tensors that come without JSON, by the same rules and with the same errors; an empty list of outputs: all.
Result<InferRequest> take_tensors(const ModelDescription& model, const std::vector<GivenTensor>& inputs,
                                  const std::vector<AskedOutput>& outputs);

// An output as the classification extension has it: of each row (the whole, where it has one axis) the largest values, the
// first of them first, as "VALUE:INDEX" or "VALUE:INDEX:LABEL".
struct ClassTexts {
  std::vector<int64_t> shape;
  std::vector<std::string> texts;
  // As tensors of BYTES lie in memory: each text behind its length, 4 bytes with the lowest first.
  std::string bytes() const {
    std::string all;
    for (const std::string& text : texts) {
      for (int shift = 0; shift < 32; shift += 8) all += static_cast<char>((text.size() >> shift) & 255);
      all += text;
    }
    return all;
  }
};
// NaN comes behind all numbers. As many as there are, where more are asked for.
ClassTexts class_texts(const HostTensor& output, int64_t classes, const std::vector<std::string>* labels);
inline constexpr const char* kNoClassCount = "The parameter \"classification\" of an output is how many classes, 0 or more.";

struct InferAnswer {
  std::string body;
  std::optional<size_t> json_bytes;  // where binary tensors follow
};
// Errors: bad_input where JSON has no numbers for a value that was asked for in JSON.
Result<InferAnswer> print_infer(const ModelDescription& model, const InferRequest& request,
                                const std::vector<HostTensor>& outputs);

// Whether all its inputs and outputs have types with names in the protocol. Errors: type_not_served.
Status check_types(const ModelDescription& model);

std::string print_server(const std::string& version);
// Triton's model configuration, as far as there is one.
std::string print_config(const ModelDescription& model);
std::string print_metadata(const ModelDescription& model, const std::vector<std::string>& versions);
// {"name", "ready": true}
std::string print_ready(const ModelDescription& model);
std::string print_error(const std::string& sentence);

struct IndexRow {
  std::string name, version, reason;
  bool ready = false;
};
std::string print_index(const std::vector<IndexRow>& rows);
// The body of an index request, which may be empty: whether ready models alone are asked for.
Result<bool> parse_index(std::string_view body);
// The body of a load or unload request, which may be empty. Errors: bad_usage for files and settings in it.
Status parse_control(std::string_view body);

}  // namespace sparkle::serve
