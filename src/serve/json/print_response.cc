// Answers of the protocol as text: numbers with as few digits as bring back the same value.
#include <charconv>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/half_floats.h"
#include "base/printable.h"
#include "serve/datatypes.h"
#include "serve/service.h"

namespace sparkle::serve {
namespace {

std::string dumped(const nlohmann::json& json) { return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace); }

template <class T>
void append_number(std::string& to, T value) {
  char text[40];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  to.append(text, end);
}

// False where JSON has no number for the value.
bool append_value(std::string& to, const HostTensor& t, int64_t i) {
  const auto real = [&](auto value) {
    if (!std::isfinite(value)) return false;
    if (value == 0 && std::signbit(value)) to += "-0.0";  // "-0" would come back as an integer
    else append_number(to, value);
    return true;
  };
  switch (t.dtype) {
    case DType::f32: return real(t.data<float>()[i]);
    case DType::f64: return real(t.data<double>()[i]);
    case DType::f16: return real(half_to_float(t.data<uint16_t>()[i]));
    case DType::bf16: return real(bfloat16_to_float(t.data<uint16_t>()[i]));
    case DType::i8: append_number(to, int{t.data<int8_t>()[i]}); return true;
    case DType::u8: append_number(to, int{t.data<uint8_t>()[i]}); return true;
    case DType::i16: append_number(to, t.data<int16_t>()[i]); return true;
    case DType::u16: append_number(to, t.data<uint16_t>()[i]); return true;
    case DType::i32: append_number(to, t.data<int32_t>()[i]); return true;
    case DType::u32: append_number(to, t.data<uint32_t>()[i]); return true;
    case DType::i64: append_number(to, t.data<int64_t>()[i]); return true;
    case DType::u64: append_number(to, t.data<uint64_t>()[i]); return true;
    case DType::boolean: to += t.data<uint8_t>()[i] ? "true" : "false"; return true;
    default: return false;
  }
}

nlohmann::json shape_from(const SessionInput& t, int first) {
  if (!t.rank_known) return nlohmann::json::array({-1});
  nlohmann::json shape = nlohmann::json::array();
  for (int a = first; a < t.shape.size(); ++a) shape.push_back(t.shape[a] < 0 ? -1 : t.shape[a]);
  return shape;
}

nlohmann::json described(const std::vector<SessionInput>& tensors) {
  nlohmann::json list = nlohmann::json::array();
  for (const SessionInput& t : tensors)
    list.push_back({{"name", t.name}, {"datatype", protocol_name(t.dtype)}, {"shape", shape_from(t, 0)}});
  return list;
}

// A tensor of texts from its shape on: text in JSON, or its size where its bytes follow.
void append_classes(std::string& to, const ClassTexts& classes, bool binary) {
  nlohmann::json rest{{"shape", classes.shape}};
  if (binary) rest["parameters"]["binary_data_size"] = classes.bytes().size();
  else rest["data"] = classes.texts;
  to += dumped(rest).substr(1);
}

}  // namespace

Result<InferAnswer> print_infer(const ModelDescription& model, const InferRequest& request,
                                const std::vector<HostTensor>& outputs) {
  InferAnswer answer;
  std::string& text = answer.body;
  text = "{\"model_name\":" + dumped(model.name) + ",\"model_version\":" + dumped(model.version);
  if (!request.id.empty()) text += ",\"id\":" + dumped(request.id);
  text += ",\"outputs\":[";
  bool first = true, any_binary = false;
  for (const WantedOutput& wanted : request.outputs) {
    const HostTensor& t = outputs[wanted.index];
    const std::string& name = model.outputs[wanted.index].name;
    if (wanted.classes > 0) {
      text += (first ? "{\"name\":" : ",{\"name\":") + dumped(name) + ",\"datatype\":\"BYTES\",";
      append_classes(text, class_texts(t, wanted.classes, model.labels.get()), wanted.binary);
      first = false, any_binary |= wanted.binary;
      continue;
    }
    text += (first ? "{\"name\":" : ",{\"name\":") + dumped(name) + ",\"datatype\":\"" + std::string(protocol_name(t.dtype)) +
            "\",\"shape\":[";
    first = false;
    for (int a = 0; a < t.shape.size(); ++a) {
      if (a) text += ',';
      append_number(text, t.shape[a]);
    }
    if (wanted.binary) {
      text += "],\"parameters\":{\"binary_data_size\":" + std::to_string(t.size_bytes()) + "}}";
      any_binary = true;
      continue;
    }
    text += "],\"data\":[";
    for (int64_t i = 0; i < t.elements(); ++i) {
      if (i) text += ',';
      if (!append_value(text, t, i))
        return Error{Reason::bad_input, "Output '" + printable(name) + "' has NaN or infinity at element " + std::to_string(i) +
                                            ", for which JSON has no number; ask for it with \"binary_data\": true."};
    }
    text += "]}";
  }
  text += "]}";
  if (!any_binary) return answer;
  answer.json_bytes = text.size();
  for (const WantedOutput& wanted : request.outputs)
    if (const HostTensor& t = outputs[wanted.index]; wanted.binary && wanted.classes > 0)
      text += class_texts(t, wanted.classes, model.labels.get()).bytes();
    else if (wanted.binary) text.append(reinterpret_cast<const char*>(t.bytes.get()), static_cast<size_t>(t.size_bytes()));
  return answer;
}

Status check_types(const ModelDescription& model) {
  for (const auto* tensors : {&model.inputs, &model.outputs})
    for (const SessionInput& t : *tensors)
      if (protocol_name(t.dtype).empty())
        return Error{Reason::type_not_served, "Tensor '" + printable(t.name) + "' of model '" + printable(model.name) +
                                                  "' is " + std::string(name_of(t.dtype)) +
                                                  ", for which the protocol has no name; convert it inside the model."};
  return ok();
}

std::string print_server(const std::string& version) {
  return dumped(
      {{"name", "sparkle"},
       {"version", version},
       {"extensions", {"binary_tensor_data", "classification", "model_configuration", "model_repository", "statistics"}}});
}

std::string print_config(const ModelDescription& model) {
  const int first = model.picture_rows > 0;
  const auto tensors = [&](const std::vector<SessionInput>& of) {
    nlohmann::json list = nlohmann::json::array();
    for (const SessionInput& t : of)
      list.push_back(
          {{"name", t.name}, {"data_type", "TYPE_" + std::string(protocol_name(t.dtype))}, {"dims", shape_from(t, first)}});
    return list;
  };
  nlohmann::json inputs = tensors(model.inputs);
  for (auto& input : inputs)
    input["format"] = model.picture_rows == 0 ? "FORMAT_NONE" : model.channels_last ? "FORMAT_NHWC" : "FORMAT_NCHW";
  return dumped({{"name", model.name},
                 {"platform", "sparkle_onnx"},
                 {"backend", "sparkle"},
                 {"max_batch_size", model.picture_rows},
                 {"input", inputs},
                 {"output", tensors(model.outputs)}});
}

std::string print_counts(const std::vector<ModelCounts>& rows) {
  nlohmann::json list = nlohmann::json::array();
  for (const ModelCounts& row : rows)
    list.push_back({{"name", row.name},
                    {"version", row.version},
                    {"inference_count", row.answered},
                    {"execution_count", row.runs},
                    {"inference_stats",
                     {{"success", {{"count", row.answered}, {"ns", static_cast<uint64_t>(row.answered_seconds * 1e9)}}},
                      {"fail", {{"count", row.failed}, {"ns", 0}}}}}});
  return dumped({{"model_stats", list}});
}

std::string print_metadata(const ModelDescription& model, const std::vector<std::string>& versions) {
  return dumped({{"name", model.name},
                 {"versions", versions},
                 {"platform", "sparkle_onnx"},
                 {"inputs", described(model.inputs)},
                 {"outputs", described(model.outputs)}});
}

std::string print_ready(const ModelDescription& model) { return dumped({{"name", model.name}, {"ready", true}}); }

std::string print_error(const std::string& sentence) { return dumped({{"error", sentence}}); }

std::string print_index(const std::vector<IndexRow>& rows) {
  nlohmann::json list = nlohmann::json::array();
  for (const IndexRow& row : rows)
    list.push_back(
        {{"name", row.name}, {"version", row.version}, {"state", row.ready ? "READY" : "UNAVAILABLE"}, {"reason", row.reason}});
  return dumped(list);
}

}  // namespace sparkle::serve
