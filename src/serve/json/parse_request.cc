// Requests: the JSON, the binary tensors behind it, and what must be there.
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/system/out_of_memory.h"
#include "serve/json/request_reader.h"

namespace sparkle::serve {
namespace {

Error invalid_request(std::string sentence) { return {Reason::bad_input, std::move(sentence)}; }

Status take_binary(GivenInput& given, std::string_view bytes) {
  if (bytes.empty()) return ok();
  std::memcpy(given.tensor.bytes.get(), bytes.data(), bytes.size());
  if (given.tensor.dtype != DType::boolean) return ok();
  for (size_t i = 0; i < bytes.size(); ++i)
    if (static_cast<uint8_t>(bytes[i]) > 1)
      return invalid_request("Byte " + std::to_string(i) + " of input " + in_quotes(given.name) +
                             " is neither 0 nor 1, and its type is BOOL.");
  return ok();
}

Result<std::vector<WantedOutput>> wanted_outputs(const ModelDescription& model, const GivenRequest& read) {
  std::vector<WantedOutput> wanted;
  if (read.outputs.empty())
    for (size_t i = 0; i < model.outputs.size(); ++i) wanted.push_back({i, read.binary_output});
  std::vector<bool> seen(model.outputs.size());
  for (const GivenOutput& given : read.outputs) {
    if (!given.named) return invalid_request("An entry of \"outputs\" has no name.");
    size_t i = 0;
    while (i < model.outputs.size() && model.outputs[i].name != given.name) ++i;
    if (i == model.outputs.size())
      return invalid_request("The model has no output " + in_quotes(given.name) + "; its outputs are " +
                             names_of(model.outputs) + ".");
    if (seen[i]) return invalid_request("Output " + in_quotes(given.name) + " is asked for twice.");
    seen[i] = true;
    wanted.push_back({i, given.binary.value_or(read.binary_output), given.classes});
  }
  return wanted;
}

// `bytes`: of each input, those of its binary tensor.
Result<InferRequest> take(const ModelDescription& model, GivenRequest& read, const std::vector<std::string_view>& bytes) {
  uint64_t budget = 0;
  for (const std::string_view own : bytes) budget += own.size();
  InferRequest request;
  request.inputs.resize(model.inputs.size());
  std::vector<bool> seen(model.inputs.size());
  for (size_t i = 0; i < read.inputs.size(); ++i) {
    GivenInput& given = read.inputs[i];
    if (given.binary_bytes) {
      SPARKLE_CHECK(make_tensor(model, given, budget));
      SPARKLE_CHECK(take_binary(given, bytes[i]));
    }
    if (seen[given.index]) return invalid_request("Input " + in_quotes(given.name) + " is given twice.");
    seen[given.index] = true;
    request.inputs[given.index] = std::move(given.tensor);
  }
  for (size_t i = 0; i < seen.size(); ++i)
    if (!seen[i]) return invalid_request("Input " + in_quotes(model.inputs[i].name) + " is missing.");
  SPARKLE_TRY(wanted, wanted_outputs(model, read));
  request.outputs = std::move(wanted);
  request.id = std::move(read.id), request.timeout_us = read.timeout_us;
  return request;
}

Result<InferRequest> parse(const ModelDescription& model, std::string_view body, std::optional<size_t> json_bytes) {
  if (json_bytes && *json_bytes > body.size())
    return invalid_request("The JSON should have " + std::to_string(*json_bytes) + " bytes, and the whole request has " +
                           std::to_string(body.size()) + ".");
  const std::string_view text = body.substr(0, json_bytes.value_or(body.size()));
  std::string_view rest = body.substr(text.size());
  SPARKLE_TRY(read, read_request(model, text));
  if (!read.has_inputs && !model.inputs.empty()) return invalid_request("The request has no \"inputs\".");
  uint64_t told = 0;
  for (size_t i = 0; i < read.inputs.size(); ++i) {
    const GivenInput& given = read.inputs[i];
    const std::string who = "Input " + (given.named ? in_quotes(given.name) : std::to_string(i));
    if (!given.known())
      return invalid_request(who + " has no " + (!given.named ? "name." : !given.typed ? "datatype." : "shape."));
    if (given.has_data == given.binary_bytes.has_value())
      return invalid_request(
          who + (given.has_data ? " has both data and binary_data_size." : " has neither data nor binary_data_size."));
    if (given.binary_bytes && *given.binary_bytes > rest.size() - told)
      return invalid_request(who + " should have " + std::to_string(*given.binary_bytes) + " bytes behind the JSON, and " +
                             std::to_string(rest.size() - told) + " are left" +
                             (json_bytes ? "." : "; say where the JSON ends (Inference-Header-Content-Length)."));
    told += given.binary_bytes.value_or(0);
  }
  if (told != rest.size())
    return invalid_request("The request has " + std::to_string(rest.size()) + " bytes behind its JSON, its inputs take " +
                           std::to_string(told) + ".");
  std::vector<std::string_view> bytes;
  for (const GivenInput& given : read.inputs) {
    bytes.push_back(rest.substr(0, given.binary_bytes.value_or(0)));
    rest.remove_prefix(bytes.back().size());
  }
  return take(model, read, bytes);
}

// What a small request is about; no tree of it is ever deep or large.
Result<nlohmann::json> small_json(std::string_view body) {
  if (body.find_first_not_of(" \t\r\n") == std::string_view::npos) return nlohmann::json::object();
  if (body.size() > 65536) return Error{Reason::bad_usage, "The request has more than 65536 bytes, and needs none of them."};
  size_t depth = 0;
  for (const char c : body)
    if ((c == '[' || c == '{') && ++depth > 64) return invalid_request("The request is nested more than 64 deep.");
  nlohmann::json json = nlohmann::json::parse(body, nullptr, false);
  if (!json.is_object()) return Error{Reason::bad_format, "The request is no JSON object."};
  return json;
}

}  // namespace

Result<InferRequest> parse_infer(const ModelDescription& model, std::string_view body, std::optional<size_t> json_bytes) {
  return guard_memory("Reading the request", [&] { return parse(model, body, json_bytes); });
}

Result<InferRequest> take_tensors(const ModelDescription& model, const std::vector<GivenTensor>& inputs,
                                  const std::vector<AskedOutput>& outputs) {
  return guard_memory("Reading the request", [&]() -> Result<InferRequest> {
    GivenRequest read;
    std::vector<std::string_view> bytes;
    for (const GivenTensor& tensor : inputs) {
      for (const int64_t d : tensor.shape)
        if (d < 0)
          return invalid_request("The shape of input " + in_quotes(tensor.name) +
                                 " has something else than natural numbers in it.");
      GivenInput given;
      given.name = tensor.name, given.datatype = tensor.datatype, given.shape = tensor.shape;
      given.named = given.typed = given.shaped = true;
      given.binary_bytes = tensor.bytes.size();
      read.inputs.push_back(std::move(given));
      bytes.push_back(tensor.bytes);
    }
    for (const AskedOutput& asked : outputs) {
      read.outputs.emplace_back();
      GivenOutput& given = read.outputs.back();
      given.name = asked.name, given.named = true, given.classes = asked.classes;
    }
    return take(model, read, bytes);
  });
}

Result<bool> parse_index(std::string_view body) {
  SPARKLE_TRY(json, small_json(body));
  if (!json.contains("ready")) return false;
  if (!json["ready"].is_boolean()) return invalid_request("\"ready\" is neither true nor false.");
  return json["ready"].get<bool>();
}

Status parse_control(std::string_view body) {
  SPARKLE_TRY(json, small_json(body));
  if (!json.contains("parameters") || !json["parameters"].is_object()) return ok();
  for (const auto& [name, value] : json["parameters"].items())
    if (name != "unload_dependents")
      return Error{Reason::bad_usage, "The parameter " + in_quotes(name) +
                                          " is not supported: a model is loaded as it lies in its file, so put it there."};
  return ok();
}

}  // namespace sparkle::serve
