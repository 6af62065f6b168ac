#include "serve/json/request_reader.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/system/out_of_memory.h"
#include "serve/datatypes.h"
#include "serve/failure.h"
#include "serve/json/json_value.h"

namespace sparkle::serve {
namespace {

constexpr size_t kMostDepth = 32;      // of arrays and objects in each other
constexpr size_t kMostTensors = 1024;  // of a request's inputs, and of its outputs

std::string shape_text(const SessionInput& t) {
  std::string text = "[";
  for (int a = 0; a < t.shape.size(); ++a) text += (a ? "," : "") + std::to_string(t.shape[a]);
  return text + "]";
}
std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t a = 0; a < shape.size() && a < 16; ++a) text += (a ? "," : "") + std::to_string(shape[a]);
  return text + (shape.size() > 16 ? ",...]" : "]");
}

Error invalid(std::string sentence) { return {Reason::bad_input, std::move(sentence)}; }

class RequestReader final : public nlohmann::json_sax<nlohmann::json>, public GivenRequest {
 public:
  RequestReader(const ModelDescription& model, size_t body_bytes) : model_(model), budget_(body_bytes / 2 + 1) {}

  // Once more over the same text, for tensors whose description came after their data.
  Status fill_again(std::string_view text) {
    for (GivenInput& given : inputs)
      if (given.has_data && !given.filled) SPARKLE_CHECK(make_tensor(model_, given, budget_));
    again_ = true, next_input_ = 0;
    return read(text);
  }
  Status read(std::string_view text) {
    path_.clear();
    // The parser takes a zero for the end, whatever follows it.
    if (const size_t zero = text.find('\0'); zero != text.npos)
      return Error{Reason::bad_format, "The request is no JSON: byte " + std::to_string(zero) + " is zero."};
    if (nlohmann::json::sax_parse(text.begin(), text.end(), this)) return ok();
    return error_ ? Status(*error_) : Status(Error{Reason::bad_format, "The request is no JSON."});
  }
  bool has_unfilled() const {
    return std::any_of(inputs.begin(), inputs.end(), [](const auto& in) { return in.has_data && !in.filled; });
  }

  bool null() override { return scalar({}); }
  bool boolean(bool value) override {
    Scalar v;
    v.kind = Scalar::Kind::boolean, v.truth = value;
    return scalar(v);
  }
  bool number_integer(number_integer_t value) override {
    Scalar v;
    v.kind = Scalar::Kind::negative, v.negative = value;
    return scalar(v);
  }
  bool number_unsigned(number_unsigned_t value) override {
    Scalar v;
    v.kind = Scalar::Kind::natural, v.natural = value;
    return scalar(v);
  }
  bool number_float(number_float_t value, const string_t& digits) override {
    Scalar v;
    v.kind = Scalar::Kind::real, v.real = value, v.text = &digits;
    return scalar(v);
  }
  bool string(string_t& value) override {
    Scalar v;
    v.kind = Scalar::Kind::text, v.text = &value;
    return scalar(v);
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return start(false); }
  bool start_array(size_t) override { return start(true); }
  bool key(string_t& value) override {
    key_ = value;
    return true;
  }
  bool end_object() override {
    path_.pop_back();
    return true;
  }
  bool end_array() override {
    const Level level = path_.back();
    path_.pop_back();
    return level.in != In::data || end_data(level);
  }
  bool parse_error(size_t position, const std::string& token, const nlohmann::json::exception&) override {
    error_ = Error{Reason::bad_format, "The request is no JSON: byte " + std::to_string(position) + " is not expected, at '" +
                                           printable(token, 40) + "'."};
    return false;
  }

 private:
  enum class In : uint8_t {
    request,
    parameters,
    inputs,
    input,
    input_parameters,
    shape,
    data,
    outputs,
    output,
    output_parameters,
    other
  };
  // `children`, `of_arrays`: of an array of data.
  struct Level {
    In in = In::other;
    int64_t children = 0;
    bool of_arrays = false;
  };

  bool refuse(std::string sentence) {
    error_ = invalid(std::move(sentence));
    return false;
  }
  GivenInput& given() { return inputs[again_ ? next_input_ - 1 : inputs.size() - 1]; }
  std::string who() { return "Input " + (given().named ? in_quotes(given().name) : std::to_string(inputs.size() - 1)); }

  bool start(bool array) {
    if (path_.size() >= kMostDepth) return refuse("The request is nested more than 32 deep.");
    if (path_.empty()) {
      if (array) return refuse("The request is a list; it is a JSON object with \"inputs\".");
      return enter(In::request);
    }
    switch (path_.back().in) {
      case In::request: return start_in_request(array);
      case In::inputs: return !array ? start_input() : refuse("An entry of \"inputs\" is a list; it is an object.");
      case In::input: return start_in_input(array);
      case In::data: return start_inner_data(array);
      case In::shape: return refuse("The shape of " + who() + " has something else than numbers in it.");
      case In::outputs:
        if (array) return refuse("An entry of \"outputs\" is a list; it is an object.");
        if (outputs.size() >= kMostTensors) return refuse("The request has more than 1024 outputs.");
        if (!again_) outputs.emplace_back();
        return enter(In::output);
      case In::output: return enter(key_ == "parameters" ? In::output_parameters : In::other);
      default: return enter(In::other);
    }
  }
  bool enter(In in) {
    path_.push_back({in, 0, false});
    return true;
  }
  bool start_in_request(bool array) {
    if (key_ == "inputs" || key_ == "outputs") {
      bool& seen = key_ == "inputs" ? has_inputs : has_outputs;
      if (!array) return refuse("\"" + key_ + "\" is an object; it is a list of tensors.");
      if (seen && !again_) return refuse("\"" + key_ + "\" is there twice.");
      seen = true;
      return enter(key_ == "inputs" ? In::inputs : In::outputs);
    }
    if (key_ == "id") return refuse("\"id\" is no text.");
    return enter(key_ == "parameters" ? In::parameters : In::other);
  }
  bool start_input() {
    if (again_) ++next_input_;
    else if (inputs.size() >= kMostTensors) return refuse("The request has more than 1024 inputs.");
    else inputs.emplace_back();
    return enter(In::input);
  }
  bool start_in_input(bool array) {
    if (key_ == "name" || key_ == "datatype") return refuse("\"" + key_ + "\" of " + who() + " is no text.");
    if (key_ == "parameters") return enter(In::input_parameters);
    if (key_ != "shape" && key_ != "data") return enter(In::other);
    if (!array) return refuse("\"" + key_ + "\" of " + who() + " is an object; it is a list of numbers.");
    if (key_ == "shape") {
      if (!again_ && given().shaped) return refuse("\"shape\" of " + who() + " is there twice.");
      given().shaped = true;
      return enter(In::shape);
    }
    if (!again_ && given().has_data) return refuse("\"data\" of " + who() + " is there twice.");
    given().has_data = true;
    if (again_) {
      filling_ = !given().filled;
    } else {
      filling_ = given().known();
      if (filling_)
        if (const Status made = make_tensor(model_, given(), budget_); !made.ok()) {
          error_ = made.error();
          return false;
        }
    }
    values_ = 0, data_at_ = path_.size(), leaf_depth_ = 0;
    return enter(In::data);
  }
  bool start_inner_data(bool array) {
    if (!array) return refuse("The data of " + who() + " has an object in it.");
    if (Level& level = path_.back(); level.children > 0 && !level.of_arrays)
      return refuse("The data of " + who() + " has numbers and lists side by side.");
    path_.back().of_arrays = true, ++path_.back().children;
    if (filling_ && path_.size() - data_at_ >= static_cast<size_t>(std::max(1, given().tensor.shape.size())))
      return refuse("The data of " + who() + " is nested deeper than its shape has axes.");
    return enter(In::data);
  }
  bool end_data(const Level& level) {
    if (!filling_) return true;
    const size_t depth = path_.size() - data_at_;  // 0: the whole of it
    const Dims& shape = given().tensor.shape;
    const std::string what = "The data of " + who() + " of shape " + shape_text(given().shape);
    if ((depth > 0 || level.of_arrays) && level.children != shape[static_cast<int>(depth)])
      return refuse(what + " has a list of " + std::to_string(level.children) + " along axis " + std::to_string(depth) + ".");
    if (depth > 0) return true;
    if (values_ != given().tensor.elements())
      return refuse(what + " has " + std::to_string(values_) + " values, not " + std::to_string(given().tensor.elements()) +
                    ".");
    given().filled = true, filling_ = false;
    return true;
  }

  bool scalar(const Scalar& v) {
    if (path_.empty()) return refuse("The request is a single value; it is a JSON object with \"inputs\".");
    switch (path_.back().in) {
      case In::data: return data_value(v);
      case In::shape: return again_ || shape_value(v);
      case In::inputs: return refuse("An entry of \"inputs\" is a value; it is an object.");
      case In::outputs: return refuse("An entry of \"outputs\" is a value; it is an object.");
      case In::request: return again_ || request_value(v);
      case In::parameters: return again_ || parameter(v);
      case In::input: return again_ || input_value(v);
      case In::input_parameters: return again_ || input_parameter(v);
      case In::output:
        if (key_ != "name" || again_) return true;
        return text_of(v, outputs.back().name, outputs.back().named, "an output");
      case In::output_parameters: return again_ || output_parameter(v);
      case In::other: return true;
    }
    return true;
  }
  bool data_value(const Scalar& v) {
    Level& level = path_.back();
    if (level.of_arrays) return refuse("The data of " + who() + " has numbers and lists side by side.");
    ++level.children;
    if (!filling_) return true;
    HostTensor& tensor = given().tensor;
    const size_t depth = path_.size() - data_at_;  // 1: flat
    if (depth > 1 && depth != static_cast<size_t>(tensor.shape.size()))
      return refuse("The data of " + who() + " of shape " + shape_text(given().shape) + " is nested " + std::to_string(depth) +
                    " deep; it is flat, or nested as the shape is.");
    if (leaf_depth_ != 0 && leaf_depth_ != depth) return refuse("The data of " + who() + " is nested unevenly.");
    leaf_depth_ = depth;
    if (values_ >= tensor.elements())
      return refuse("The data of " + who() + " of shape " + shape_text(given().shape) + " has more than " +
                    std::to_string(tensor.elements()) + " values.");
    if (put_value(tensor, values_, v)) return ++values_, true;
    return refuse("Value " + std::to_string(values_) + " of " + who() + " is none of " +
                  std::string(protocol_name(tensor.dtype)) + ".");
  }
  bool shape_value(const Scalar& v) {
    if (v.kind != Scalar::Kind::natural || v.natural > static_cast<uint64_t>(INT64_MAX))
      return refuse("The shape of " + who() + " has something else than natural numbers in it.");
    if (given().shape.size() >= kMostDepth) return refuse("The shape of " + who() + " has more than 8 axes.");
    given().shape.push_back(static_cast<int64_t>(v.natural));
    return true;
  }
  bool text_of(const Scalar& v, std::string& to, bool& seen, const std::string& whose) {
    if (v.kind != Scalar::Kind::text) return refuse("\"" + key_ + "\" of " + whose + " is no text.");
    if (seen) return refuse("\"" + key_ + "\" of " + whose + " is there twice.");
    to = *v.text, seen = true;
    return true;
  }
  bool request_value(const Scalar& v) {
    if (key_ == "inputs" || key_ == "outputs") return refuse("\"" + key_ + "\" is no list.");
    if (key_ != "id") return true;
    if (v.kind != Scalar::Kind::text) return refuse("\"id\" is no text.");
    if (v.text->size() > 4096) return refuse("\"id\" has more than 4096 bytes.");
    id = *v.text;
    return true;
  }
  bool input_value(const Scalar& v) {
    if (key_ == "name") return text_of(v, given().name, given().named, who());
    if (key_ == "datatype") return text_of(v, given().datatype, given().typed, who());
    if (key_ == "shape" || key_ == "data") return refuse("\"" + key_ + "\" of " + who() + " is no list.");
    return true;
  }
  bool bool_of(const Scalar& v, std::optional<bool>& to) {
    if (v.kind != Scalar::Kind::boolean) return refuse("The parameter \"" + key_ + "\" is neither true nor false.");
    to = v.truth;
    return true;
  }
  // What asks for something that is not there; parameters of others are theirs.
  bool unsupported(const Scalar& v) {
    const bool asks = v.kind == Scalar::Kind::text      ? !v.text->empty()
                      : v.kind == Scalar::Kind::boolean ? v.truth
                                                        : v.as_double() != 0;
    if (key_.starts_with("shared_memory")) return refuse(kNoSharedMemory);
    if (key_.starts_with("sequence_") && asks)
      return refuse("Sequences are not supported; each request stands for itself, so leave out \"" + printable(key_) + "\".");
    if (key_ == "triton_enable_empty_final_response" && asks)
      return refuse("Decoupled models are not supported; each request has one answer.");
    return true;
  }
  bool parameter(const Scalar& v) {
    if (key_ == "binary_data_output") {
      std::optional<bool> wanted;
      if (!bool_of(v, wanted)) return false;
      binary_output = *wanted;
    }
    if (key_ == "timeout") {
      if (v.kind != Scalar::Kind::natural || v.natural > uint64_t{1} << 50)
        return refuse("The parameter \"timeout\" is a number of microseconds.");
      timeout_us = static_cast<int64_t>(v.natural);
    }
    return unsupported(v);
  }
  bool input_parameter(const Scalar& v) {
    if (key_ == "binary_data_size") {
      if (v.kind != Scalar::Kind::natural) return refuse("binary_data_size of " + who() + " is no natural number.");
      if (given().binary_bytes) return refuse("binary_data_size of " + who() + " is there twice.");
      given().binary_bytes = v.natural;
    }
    return unsupported(v);
  }
  bool output_parameter(const Scalar& v) {
    if (key_ == "binary_data") return bool_of(v, outputs.back().binary);
    if (key_ == "classification") {
      if (v.kind != Scalar::Kind::natural || v.natural > uint64_t{1} << 50) return refuse(kNoClassCount);
      outputs.back().classes = static_cast<int64_t>(v.natural);
      return true;
    }
    return unsupported(v);
  }

  const ModelDescription& model_;
  uint64_t budget_;  // elements that the bytes can still hold
  std::vector<Level> path_;
  std::string key_;
  std::optional<Error> error_;
  bool again_ = false, filling_ = false;
  size_t next_input_ = 0;  // of the second time
  int64_t values_ = 0;     // of the tensor that is being filled
  size_t data_at_ = 0, leaf_depth_ = 0;
};

}  // namespace

std::string in_quotes(const std::string& name) { return "'" + printable(name) + "'"; }

std::string names_of(const std::vector<SessionInput>& tensors) {
  std::string names;
  for (const SessionInput& t : tensors) names += (names.empty() ? "'" : ", '") + printable(t.name) + "'";
  return names;
}

Status make_tensor(const ModelDescription& model, GivenInput& given, uint64_t& budget) {
  const std::string who = "Input " + in_quotes(given.name) + " ";
  const auto found =
      std::find_if(model.inputs.begin(), model.inputs.end(), [&](const auto& in) { return in.name == given.name; });
  if (found == model.inputs.end())
    return invalid("The model has no input " + in_quotes(given.name) + "; its inputs are " + names_of(model.inputs) + ".");
  given.index = static_cast<size_t>(found - model.inputs.begin());
  const auto type = protocol_type(given.datatype);
  if (!type || *type != found->dtype)
    return invalid(who + "is " + std::string(protocol_name(found->dtype)) + " in the model, " + in_quotes(given.datatype) +
                   " was given; convert it.");
  bool fits = given.shape.size() <= static_cast<size_t>(kMaxRank);
  if (fits && found->rank_known) fits = given.shape.size() == static_cast<size_t>(found->shape.size());
  for (size_t a = 0; fits && found->rank_known && a < given.shape.size(); ++a)
    fits = found->shape[static_cast<int>(a)] < 0 || found->shape[static_cast<int>(a)] == given.shape[a];
  if (!fits)
    return invalid(who + "has shape " + (found->rank_known ? shape_text(*found) : std::string("[...] of at most 8 axes")) +
                   " in the model, " + shape_text(given.shape) + " was given.");
  const Dims shape{std::span<const int64_t>(given.shape)};
  const auto bytes = tensor_bytes(*type, shape);
  if (!bytes)
    return Error{Reason::size_overflow, who + "of shape " + shape_text(given.shape) + " is more than can be addressed."};
  const auto elements = static_cast<uint64_t>(*bytes / size_of(*type));
  if (given.binary_bytes && *given.binary_bytes != static_cast<uint64_t>(*bytes))
    return invalid(who + "of shape " + shape_text(given.shape) + " has " + std::to_string(*bytes) +
                   " bytes, binary_data_size says " + std::to_string(*given.binary_bytes) + ".");
  if (elements > budget)
    return invalid(who + "of shape " + shape_text(given.shape) + " has " + std::to_string(elements) +
                   " elements, more than the bytes that came can hold.");
  budget -= elements;
  SPARKLE_TRY(tensor, allocate_tensor(*type, shape, "Input " + in_quotes(given.name)));
  given.tensor = std::move(tensor);
  return ok();
}

Result<GivenRequest> read_request(const ModelDescription& model, std::string_view text) {
  RequestReader reader(model, text.size());
  SPARKLE_CHECK(reader.read(text));
  for (const GivenInput& given : reader.inputs)
    if (given.has_data && !given.known())
      return invalid("An input has data and no " + std::string(!given.named ? "name." : !given.typed ? "datatype." : "shape."));
  if (reader.has_unfilled()) SPARKLE_CHECK(reader.fill_again(text));
  return GivenRequest(std::move(reader));
}

}  // namespace sparkle::serve
