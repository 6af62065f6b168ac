#include "serve/grpc/infer_message.h"

#include <limits>

#include "serve/datatypes.h"

namespace sparkle::serve {
namespace {

using ::inference::InferParameter;
using ::inference::InferTensorContents;
using Input = ::inference::ModelInferRequest::InferInputTensor;

template <class T>
std::string_view bytes_of(const google::protobuf::RepeatedField<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), static_cast<size_t>(values.size()) * sizeof(T)};
}

// Values of 32 bits that the type has fewer for. False where one does not fit.
template <class To, class From>
bool narrow(const google::protobuf::RepeatedField<From>& values, std::string& to) {
  to.resize(static_cast<size_t>(values.size()) * sizeof(To));
  auto* out = to.data();
  for (const From value : values) {
    if (value < std::numeric_limits<To>::min() || value > std::numeric_limits<To>::max()) return false;
    const To own = static_cast<To>(value);
    std::copy_n(reinterpret_cast<const char*>(&own), sizeof own, out);
    out += sizeof own;
  }
  return true;
}

// Where the elements of a tensor's typed contents lie; a sentence's end where they are none of its type.
const char* contents_of(const Input& input, std::string_view& bytes, std::string& narrowed) {
  const InferTensorContents& given = input.contents();
  const int fields = (given.bool_contents_size() > 0) + (given.int_contents_size() > 0) + (given.int64_contents_size() > 0) +
                     (given.uint_contents_size() > 0) + (given.uint64_contents_size() > 0) + (given.fp32_contents_size() > 0) +
                     (given.fp64_contents_size() > 0) + (given.bytes_contents_size() > 0);
  if (fields > 1) return "has contents of several types.";
  const std::string& type = input.datatype();
  bool fits = true;
  if (type == "BOOL") bytes = bytes_of(given.bool_contents());
  else if (type == "INT32") bytes = bytes_of(given.int_contents());
  else if (type == "INT64") bytes = bytes_of(given.int64_contents());
  else if (type == "UINT32") bytes = bytes_of(given.uint_contents());
  else if (type == "UINT64") bytes = bytes_of(given.uint64_contents());
  else if (type == "FP32") bytes = bytes_of(given.fp32_contents());
  else if (type == "FP64") bytes = bytes_of(given.fp64_contents());
  else if (type == "INT8") fits = narrow<int8_t>(given.int_contents(), narrowed), bytes = narrowed;
  else if (type == "INT16") fits = narrow<int16_t>(given.int_contents(), narrowed), bytes = narrowed;
  else if (type == "UINT8") fits = narrow<uint8_t>(given.uint_contents(), narrowed), bytes = narrowed;
  else if (type == "UINT16") fits = narrow<uint16_t>(given.uint_contents(), narrowed), bytes = narrowed;
  else if (fields > 0) return "has contents in a field that is none of its type; send raw_input_contents.";
  if (!fits) return "has a value that is none of its type.";
  if (fields > 0 && bytes.empty()) return "has contents in a field that is none of its type.";
  return nullptr;
}

bool asks(const InferParameter& value) {
  switch (value.parameter_choice_case()) {
    case InferParameter::kBoolParam: return value.bool_param();
    case InferParameter::kInt64Param: return value.int64_param() != 0;
    case InferParameter::kUint64Param: return value.uint64_param() != 0;
    case InferParameter::kDoubleParam: return value.double_param() != 0;
    case InferParameter::kStringParam: return !value.string_param().empty();
    default: return false;
  }
}

// What asks for something that is not there; parameters of others are theirs.
const char* unsupported_parameter(const google::protobuf::Map<std::string, InferParameter>& parameters) {
  for (const auto& [name, value] : parameters) {
    if (name.starts_with("shared_memory")) return kNoSharedMemory;
    if (!asks(value)) continue;
    if (name.starts_with("sequence_"))
      return "Sequences are not supported; each request stands for itself, so leave out the parameters sequence_*.";
    if (name == "triton_enable_empty_final_response") return "Decoupled models are not supported; each request has one answer.";
  }
  return nullptr;
}

// How many classes an output is asked for, 0: itself; -1 where that is no such number.
int64_t classes_asked(const google::protobuf::Map<std::string, InferParameter>& parameters) {
  const auto found = parameters.find("classification");
  if (found == parameters.end()) return 0;
  const InferParameter& value = found->second;
  if (value.parameter_choice_case() == InferParameter::kInt64Param) return std::max<int64_t>(-1, value.int64_param());
  if (value.parameter_choice_case() != InferParameter::kUint64Param || value.uint64_param() > uint64_t{1} << 50) return -1;
  return static_cast<int64_t>(value.uint64_param());
}

std::string which(const Input& input, int i) {
  const std::string& name = input.name();  // of few bytes and plain ones, or its number
  const bool plain = !name.empty() && name.size() <= 100 && name.find_first_of("'\\\x7f") == name.npos &&
                     std::all_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x20; });
  return plain ? "Input '" + name + "' " : "Input " + std::to_string(i) + " ";
}

}  // namespace

bool parse_infer_message(std::string_view bytes, ParsedInfer& parsed, bool& unsupported) {
  InferParts parts;
  InferCall& call = parsed.call;
  unsupported = false;
  const auto refuse = [&](std::string sentence) { call.refused = Refusal{Failure::invalid, std::move(sentence)}; };
  if (std::string wrong = split_infer_request(bytes, parts); !wrong.empty()) {
    refuse(std::move(wrong));
    return false;
  }
  auto& message = parsed.message;
  if (!message.ParseFromArray(parts.head.data(), static_cast<int>(parts.head.size()))) {
    refuse("The message is no ModelInferRequest.");
    return false;
  }
  call.model = message.model_name(), call.version = message.model_version(), call.id = message.id();
  const char* no = unsupported_parameter(message.parameters());
  for (const auto& input : message.inputs())
    if (!no) no = unsupported_parameter(input.parameters());
  for (const auto& output : message.outputs()) {
    if (!no) no = unsupported_parameter(output.parameters());
    call.outputs.push_back({output.name(), classes_asked(output.parameters())});
  }
  if (no) return unsupported = true, refuse(no), true;
  for (const AskedOutput& output : call.outputs)
    if (output.classes < 0) return refuse(kNoClassCount), true;
  if (call.id.size() > 4096) return refuse("\"id\" has more than 4096 bytes."), true;
  if (const auto timeout = message.parameters().find("timeout"); timeout != message.parameters().end()) {
    const auto& value = timeout->second;
    const bool is_signed = value.parameter_choice_case() == InferParameter::kInt64Param;
    const uint64_t us = is_signed ? static_cast<uint64_t>(value.int64_param()) : value.uint64_param();
    if ((!is_signed && value.parameter_choice_case() != InferParameter::kUint64Param) || us > uint64_t{1} << 50)
      return refuse("The parameter \"timeout\" is a number of microseconds."), true;
    if (us > 0) call.deadline = Clock::now() + std::chrono::microseconds(us);
  }
  const auto count = static_cast<size_t>(message.inputs_size());
  if (!parts.raw.empty() && parts.raw.size() != count)
    return refuse("The request has " + std::to_string(count) + " inputs and " + std::to_string(parts.raw.size()) +
                  " raw_input_contents; there is one for each input, or none."),
           true;
  parsed.narrowed.resize(count);
  for (int i = 0; i < message.inputs_size(); ++i) {
    const Input& input = message.inputs(i);
    GivenTensor tensor{input.name(), input.datatype(), {input.shape().begin(), input.shape().end()}, {}};
    if (!parts.raw.empty()) {
      if (input.has_contents()) return refuse(which(input, i) + "has both contents and raw_input_contents."), true;
      tensor.bytes = parts.raw[static_cast<size_t>(i)];
    } else if (const char* wrong = contents_of(input, tensor.bytes, parsed.narrowed[static_cast<size_t>(i)])) {
      return refuse(which(input, i) + wrong), true;
    }
    call.inputs.push_back(std::move(tensor));
  }
  return true;
}

std::string infer_answer_head(const InferCall& call, const InferReply& reply) {
  ::inference::ModelInferResponse answer;
  answer.set_model_name(call.model), answer.set_model_version(reply.version), answer.set_id(call.id);
  for (const AnsweredTensor& output : reply.outputs) {
    auto* to = answer.add_outputs();
    to->set_name(output.name);
    if (output.classes) {
      to->set_datatype("BYTES");
      for (const int64_t d : output.classes->shape) to->add_shape(d);
      continue;
    }
    to->set_datatype(std::string(protocol_name(output.tensor.dtype)));
    for (const int64_t d : output.tensor.shape) to->add_shape(d);
  }
  return answer.SerializeAsString();
}

}  // namespace sparkle::serve
