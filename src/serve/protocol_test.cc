// Requests as bytes: what is right comes in exactly, what is wrong is named in one sentence before memory is taken for it.
#include "base/system/out_of_memory.h"
#include "serve/protocol.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "base/half_floats.h"
#include "serve/datatypes.h"
#include "serve/serve_testing.h"

namespace sparkle::serve {
namespace {

using ::sparkle::testing::described_model;

std::string entry(const std::string& rest) { return R"({"inputs":[{"name":"x","datatype":"FP32",)" + rest + "}]}"; }

void expect_refused(const std::string& body, const std::string& part, std::optional<size_t> json_bytes = {},
                    const ModelDescription& model = described_model()) {
  const auto request = parse_infer(model, body, json_bytes);
  ASSERT_FALSE(request.ok()) << body.substr(0, 200);
  const std::string& said = request.error().message;
  EXPECT_NE(said.find(part), std::string::npos) << said << "\nfor " << body.substr(0, 200);
  EXPECT_LT(said.size(), 700u);
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 0) << said;
  EXPECT_TRUE(said.ends_with('.')) << said;
}

std::vector<float> floats_of(const HostTensor& t) { return {t.data<float>(), t.data<float>() + t.elements()}; }

TEST(Protocol, DataMayBeFlatOrNestedAndStandAnywhere) {
  const std::vector<float> wanted = {1, -2.5f, 3e-3f, 4};
  const std::vector<std::string> bodies = {
      entry(R"("shape":[2,2],"data":[1,-2.5,3e-3,4])"), entry(R"("shape":[2,2],"data":[[1,-2.5],[3e-3,4]])"),
      R"({"inputs":[{"data":[[1,-2.5],[3e-3,4]],"shape":[2,2],"name":"x","datatype":"FP32"}],"more":{"a":[{"b":[]}]}})",
      R"({"outputs":[],"id":"7","inputs":[{"name":"x","shape":[2,2],"data":[1,-2.5,3e-3,4],"datatype":"FP32","parameters":{"own":1}}]})"};
  for (const std::string& body : bodies) {
    const auto request = parse_infer(described_model(), body, {});
    ASSERT_TRUE(request.ok()) << request.error().message;
    EXPECT_EQ(request->inputs[0].shape, (Dims{2, 2}));
    EXPECT_EQ(floats_of(request->inputs[0]), wanted) << body;
    ASSERT_EQ(request->outputs.size(), 1u);
    EXPECT_FALSE(request->outputs[0].binary);
  }
  // Nothing is something too.
  for (const char* data : {"[]", "[[]]"})
    EXPECT_EQ(parse_infer(described_model(), entry(R"("shape":[0,2],"data":)" + std::string(data)), {}).ok(), data[1] == ']');
}

TEST(Protocol, BinaryTensorsFollowTheJson) {
  const float values[] = {1, 2, 3, 4};
  const std::string json = R"({"inputs":[{"name":"x","datatype":"FP32","shape":[2,2],"parameters":{"binary_data_size":16}}],)"
                           R"("parameters":{"binary_data_output":true,"timeout":2500}})";
  std::string body = json + std::string(reinterpret_cast<const char*>(values), 16);
  const auto request = parse_infer(described_model(), body, json.size());
  ASSERT_TRUE(request.ok()) << request.error().message;
  EXPECT_EQ(floats_of(request->inputs[0]), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_TRUE(request->outputs[0].binary);
  EXPECT_EQ(request->timeout_us, 2500);
  expect_refused(body.substr(0, body.size() - 1), "should have 16 bytes behind the JSON, and 15 are left", json.size());
  expect_refused(body + "x", "has 17 bytes behind its JSON, its inputs take 16", json.size());
  expect_refused(body, "is no JSON", body.size());
  expect_refused(json, "and the whole request has", json.size() + 1);
  expect_refused(json, "say where the JSON ends", {});
  expect_refused(json, "is no JSON", 3);
  expect_refused("", "is no JSON", 0);
  for (const char* size : {"15", "0", "18446744073709551615"}) {
    std::string other = json;
    other.replace(other.find("16"), 2, size);
    expect_refused(other + std::string(reinterpret_cast<const char*>(values), 16), "", other.size());
  }
  std::string negative = json;
  negative.replace(negative.find("16"), 2, "-16");
  expect_refused(negative, "is no natural number", negative.size());
}

TEST(Protocol, SeveralBinaryTensorsLieInTheOrderOfTheRequest) {
  ModelDescription model = described_model();
  model.inputs.push_back({"z", DType::i16, {-1}, {}});
  const int16_t first[] = {7, -8, 9};
  const float second[] = {1, 2};
  const std::string json = R"({"inputs":[{"name":"z","datatype":"INT16","shape":[3],"parameters":{"binary_data_size":6}},)"
                           R"({"name":"x","datatype":"FP32","shape":[1,2],"parameters":{"binary_data_size":8}}]})";
  const std::string body =
      json + std::string(reinterpret_cast<const char*>(first), 6) + std::string(reinterpret_cast<const char*>(second), 8);
  const auto request = parse_infer(model, body, json.size());
  ASSERT_TRUE(request.ok()) << request.error().message;
  EXPECT_EQ(floats_of(request->inputs[0]), (std::vector<float>{1, 2}));
  EXPECT_EQ(std::memcmp(request->inputs[1].bytes.get(), first, 6), 0);
}

TEST(Protocol, NumbersAreRoundedOnce) {
  // Just below the middle of two floats, and nearer to that middle than a double can tell.
  const auto request = parse_infer(described_model(), entry(R"("shape":[1,2],"data":[1.00000017881393432617187499,-0.0])"), {});
  ASSERT_TRUE(request.ok()) << request.error().message;
  EXPECT_EQ(request->inputs[0].data<float>()[0], 0x1.000002p0f);
  EXPECT_TRUE(std::signbit(request->inputs[0].data<float>()[1]));
  const auto answer = print_infer(described_model(), *request, {request->inputs[0]});
  ASSERT_TRUE(answer.ok());
  EXPECT_NE(answer->body.find("[1.0000001,-0.0]"), std::string::npos) << answer->body;
}

TEST(Protocol, WhatIsMalformedIsNamed) {
  const auto refused = [](const std::string& body, const std::string& part) { expect_refused(body, part); };
  refused("", "is no JSON");
  refused("[]", "is a list");
  refused("3", "is a single value");
  refused("{}", "has no \"inputs\"");
  refused(R"({"inputs":{}})", "is an object; it is a list");
  refused(R"({"inputs":[]})", "Input 'x' is missing");
  refused(R"({"inputs":[[]]})", "is a list; it is an object");
  refused(R"({"inputs":[1]})", "is a value");
  refused(R"({"inputs":3})", "\"inputs\" is no list");
  refused(R"({"inputs":[],"inputs":[]})", "is there twice");
  refused(R"({"inputs":[{}]})", "Input 0 has no name");
  refused(R"({"inputs":[{"name":3}]})", "is no text");
  refused(R"({"inputs":[{"name":"x","name":"x"}]})", "is there twice");
  refused(R"({"inputs":[{"name":"x"}]})", "has no datatype");
  refused(R"({"inputs":[{"name":"x","datatype":"FP32"}]})", "has no shape");
  refused(entry(R"("shape":[2,2])"), "neither data nor binary_data_size");
  refused(entry(R"("shape":[1,2],"data":[1,2],"parameters":{"binary_data_size":8})"), "both data and binary_data_size");
  refused(entry(R"("shape":[2,2],"data":[1,2,3])"), "has 3 values, not 4");
  refused(entry(R"("shape":[2,2],"data":[1,2,3,4,5])"), "has more than 4 values");
  refused(entry(R"("shape":[2,2],"data":[[1,2],[3]])"), "has a list of 1 along axis 1");
  refused(entry(R"("shape":[2,2],"data":[[1,2]])"), "has a list of 1 along axis 0");
  refused(entry(R"("shape":[2,2],"data":[[1,2],3,4])"), "numbers and lists side by side");
  refused(entry(R"("shape":[2,2],"data":[1,[2,3],4])"), "numbers and lists side by side");
  refused(entry(R"("shape":[2,2],"data":[[[1],[2]],[[3],[4]]])"), "nested deeper than its shape");
  refused(entry(R"("shape":[2,2],"data":[1,2,3,"4"])"), "Value 3 of Input 'x' is none of FP32");
  refused(entry(R"("shape":[2,2],"data":[1,2,3,null])"), "is none of FP32");
  refused(entry(R"("shape":[2,2],"data":[1,2,3,1e39])"), "is none of FP32");
  refused(entry(R"("shape":[2,2],"data":[1,2,3,1e400])"), "is no JSON");
  refused(entry(R"("shape":[2,2],"data":[1,2,3,NaN])"), "is no JSON");
  refused(entry(R"("shape":[2,2],"data":{})"), "it is a list of numbers");
  refused(entry(R"("shape":[2,2],"data":[{}])"), "has an object in it");
  refused(entry(R"("shape":2,"data":[1,2])"), "is no list");
  refused(entry(R"("shape":[[2],2],"data":[1,2])"), "something else than numbers");
  refused(R"({"inputs":[{"name":"z","datatype":"FP32","shape":[1,2],"data":[1,2]}]})", "no input 'z'; its inputs are 'x'");
  refused(R"({"inputs":[{"name":"x","datatype":"FP16","shape":[1,2],"data":[1,2]}]})",
          "is FP32 in the model, 'FP16' was given");
  refused(R"({"inputs":[{"name":"x","datatype":"BYTES","shape":[1,2],"data":["a","b"]}]})", "'BYTES' was given");
  const std::string one = R"({"name":"x","datatype":"FP32","shape":[1,2],"data":[1,2]})";
  refused("{\"inputs\":[" + one + "," + one + "]}", "is given twice");
  const std::string start = "{\"inputs\":[" + one + "],";
  refused(start + R"("outputs":[{"name":"z"}]})", "no output 'z'; its outputs are 'y'");
  refused(start + R"("outputs":[{"name":"y"},{"name":"y"}]})", "asked for twice");
  refused(start + R"("outputs":[{}]})", "has no name");
  refused(start + R"("outputs":[{"name":"y","parameters":{"classification":-3}}]})", "how many classes, 0 or more");
  refused(start + R"("outputs":[{"name":"y","parameters":{"classification":true}}]})", "how many classes, 0 or more");
  refused(start + R"("outputs":[{"name":"y","parameters":{"binary_data":1}}]})", "neither true nor false");
  refused(start + R"("outputs":[{"name":"y","parameters":{"shared_memory_region":"r"}}]})", "shared memory are not supported");
  refused(start + R"("parameters":{"sequence_id":3}})", "Sequences are not supported");
  refused(start + R"("parameters":{"sequence_start":true}})", "Sequences are not supported");
  refused(start + R"("parameters":{"triton_enable_empty_final_response":true}})", "Decoupled models are not supported");
  refused(start + R"("parameters":{"timeout":-1}})", "number of microseconds");
  refused(start + R"("id":3})", "\"id\" is no text");
  refused(start + R"("id":[]})", "\"id\" is no text");
  refused(start + "\"a\":1}junk", "is no JSON");
}

TEST(Protocol, HugeShapesTakeNoMemory) {
  const auto refused = [](const std::string& shape, const std::string& part, const std::string& data = "[1]") {
    expect_refused(entry("\"shape\":" + shape + ",\"data\":" + data), part);
    expect_refused(R"({"inputs":[{"data":)" + data + R"(,"name":"x","datatype":"FP32","shape":)" + shape + "}]}", part);
    expect_refused(entry("\"shape\":" + shape + R"(,"parameters":{"binary_data_size":4})") + "abcd", "",
                   entry("\"shape\":" + shape + R"(,"parameters":{"binary_data_size":4})").size());
  };
  refused("[1000000000,2]", "more than the bytes that came can hold");
  refused("[9223372036854775807,2]", "more than can be addressed");
  refused("[4611686018427387904,2]", "more than can be addressed");
  refused("[18446744073709551615,2]", "something else than natural numbers");
  refused("[18446744073709551616,2]", "something else than natural numbers");
  refused("[-1,2]", "something else than natural numbers");
  refused("[1.0,2]", "something else than natural numbers");
  refused("[2,3]", "has shape [-1,2] in the model, [2,3] was given");
  refused("[2]", "has shape [-1,2] in the model, [2] was given");
  refused("[]", "has shape [-1,2] in the model, [] was given");
  refused("[1,1,1,1,1,1,1,1,1,2]", "was given");
  std::string many = "[1";
  for (int i = 0; i < 1000; ++i) many += ",1";
  refused(many + "]", "more than 8 axes");
  // Each of many tensors may be as large as all bytes; together they may not.
  ModelDescription two = described_model();
  two.inputs.push_back({"z", DType::f32, {-1, 2}, {}});
  std::string body = R"({"inputs":[{"name":"x","datatype":"FP32","shape":[60,2],"data":[1)";
  for (int i = 1; i < 120; ++i) body += ",1";
  expect_refused(body + R"(]},{"name":"z","datatype":"FP32","shape":[90,2],"data":[]}]})", "more than the bytes that came", {},
                 two);
}

TEST(Protocol, NestingHasABound) {
  const auto nest = [](size_t depth, const char* open, const char* end) {
    std::string text;
    for (size_t i = 0; i < depth; ++i) text += open;
    for (size_t i = 0; i < depth; ++i) text += end;
    return text;
  };
  expect_refused(nest(100000, "[", "]"), "is a list");
  for (const size_t depth : {40u, 100000u}) {
    expect_refused("{\"own\":" + nest(depth, "[", "]") + "}", "more than 32 deep");
    expect_refused(entry("\"shape\":[1,2],\"data\":" + nest(depth, "[", "]")), "nested deeper than its shape");
    expect_refused(R"({"inputs":[{"data":)" + nest(depth, "[", "]") + "}]}", "more than 32 deep");
    expect_refused("{\"own\":" + nest(depth, "{\"a\":", "}") + "}", "");
  }
  EXPECT_FALSE(parse_index(nest(1000, "[", "]")).ok());
  EXPECT_FALSE(parse_control("{\"a\":" + nest(1000, "[", "]") + "}").ok());
}

// Any place where the bytes end, and any byte that is another one: an answer or a sentence, never more.
TEST(Protocol, CutAndChangedRequestsAreAnsweredOrNamed) {
  const float values[] = {1, 2, 3, 4};
  const std::string json =
      R"({"id":"a","inputs":[{"name":"x","datatype":"FP32","shape":[2,2],"parameters":{"binary_data_size":16}}]})";
  const std::string body = json + std::string(reinterpret_cast<const char*>(values), 16);
  for (size_t end = 0; end < body.size(); ++end) {
    EXPECT_FALSE(parse_infer(described_model(), body.substr(0, end), json.size()).ok());
    EXPECT_FALSE(parse_infer(described_model(), body.substr(0, end), {}).ok());
  }
  std::mt19937 random(3);
  for (int i = 0; i < 20000; ++i) {
    std::string other = body;
    for (int n = 0; n < 3; ++n) other[random() % other.size()] = static_cast<char>(random());
    const auto request = parse_infer(described_model(), other, json.size());
    EXPECT_TRUE(request.ok() || !request.error().message.empty());
  }
}

// Random values of each type, printed as an answer and read as a request, in JSON and in bytes: the same bits.
TEST(Protocol, EveryTypeComesBackToTheBit) {
  std::mt19937_64 random(11);
  for (int i = 0; i < kDTypes; ++i) {
    const auto type = static_cast<DType>(i);
    const std::string name(protocol_name(type));
    if (name.empty()) {
      EXPECT_TRUE(is_narrow(type));
      continue;
    }
    EXPECT_EQ(protocol_type(name), type);
    ModelDescription model{"m", "1", {{"x", type, {-1, -1}, {}}}, {{"x", type, {-1, -1}, {}}}};
    EXPECT_TRUE(check_types(model).ok());
    HostTensor t = HostTensor::zeros(type, {29, 7});
    for (int64_t b = 0; b < t.size_bytes(); ++b) t.bytes[static_cast<size_t>(b)] = static_cast<std::byte>(random());
    for (int64_t e = 0; e < t.elements(); ++e) {
      if (type == DType::boolean) t.data<uint8_t>()[e] &= 1;
      if (type == DType::f32 && !std::isfinite(t.data<float>()[e])) t.data<float>()[e] = 0;
      if (type == DType::f64 && !std::isfinite(t.data<double>()[e])) t.data<double>()[e] = 0;
      if (type == DType::f16 && !std::isfinite(half_to_float(t.data<uint16_t>()[e]))) t.data<uint16_t>()[e] = 0;
      if (type == DType::bf16 && !std::isfinite(bfloat16_to_float(t.data<uint16_t>()[e]))) t.data<uint16_t>()[e] = 0;
    }
    for (const bool binary : {false, true}) {
      const auto answer = print_infer(model, {"", {}, {{0, binary}}, 0}, {t});
      ASSERT_TRUE(answer.ok()) << answer.error().message;
      ASSERT_EQ(answer->json_bytes.has_value(), binary);
      std::string json = answer->body.substr(0, answer->json_bytes.value_or(answer->body.size()));
      const std::string rest = answer->body.substr(json.size());
      EXPECT_FALSE(nlohmann::json::parse(json, nullptr, false).is_discarded());
      json.replace(json.find("\"outputs\""), 9, "\"inputs\"");
      const auto request = parse_infer(model, json + rest, json.size());
      ASSERT_TRUE(request.ok()) << name << ": " << request.error().message;
      EXPECT_EQ(request->inputs[0].shape, t.shape);
      EXPECT_EQ(std::memcmp(request->inputs[0].bytes.get(), t.bytes.get(), static_cast<size_t>(t.size_bytes())), 0) << name;
    }
  }
  ModelDescription narrow{"m", "1", {{"x", DType::f8e5m2, {1}, {}}}, {}};
  EXPECT_FALSE(check_types(narrow).ok());
}

TEST(Protocol, ValuesBeyondTheirTypesAreNamed) {
  const struct {
    DType type;
    const char *good, *bad;
  } cases[] = {{DType::i8, "-128", "128"},
               {DType::i8, "127", "-129"},
               {DType::u8, "255", "256"},
               {DType::u8, "0", "-1"},
               {DType::i16, "-32768", "32768"},
               {DType::u16, "65535", "65536"},
               {DType::i32, "2147483647", "-2147483649"},
               {DType::u32, "4294967295", "4294967296"},
               {DType::i64, "-9223372036854775808", "9223372036854775808"},
               {DType::u64, "18446744073709551615", "-1"},
               {DType::i32, "3", "3.0"},
               {DType::boolean, "true", "2"},
               {DType::boolean, "0", "0.0"},
               {DType::f16, "65504", "65520"},
               {DType::bf16, "3e38", "3.4e38"},
               {DType::f32, "3.4028235e38", "3.4028236e38"},
               {DType::f32, "1e-50", "true"}};
  for (const auto& c : cases) {
    const ModelDescription model{"m", "1", {{"x", c.type, {1}, {}}}, {{"x", c.type, {1}, {}}}};
    const auto body = [&](const char* value) {
      return R"({"inputs":[{"name":"x","datatype":")" + std::string(protocol_name(c.type)) + R"(","shape":[1],"data":[)" +
             value + "]}]}";
    };
    EXPECT_TRUE(parse_infer(model, body(c.good), {}).ok()) << protocol_name(c.type) << c.good;
    expect_refused(body(c.bad), "is none of", {}, model);
  }
  const ModelDescription bits{"m", "1", {{"x", DType::boolean, {2}, {}}}, {{"y", DType::boolean, {2}, {}}}};
  const std::string json = R"({"inputs":[{"name":"x","datatype":"BOOL","shape":[2],"parameters":{"binary_data_size":2}}]})";
  expect_refused(json + std::string("\1\2", 2), "Byte 1 of input 'x' is neither 0 nor 1", json.size(), bits);
}

TEST(Protocol, JsonHasNoNumberForNaN) {
  const ModelDescription model = described_model();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const HostTensor t = HostTensor::of<float>(DType::f32, {1, 2}, {1, nan});
  const auto refused = print_infer(model, {"", {}, {{0, false}}, 0}, {t});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("ask for it with \"binary_data\": true"), std::string::npos);
  EXPECT_TRUE(print_infer(model, {"", {}, {{0, true}}, 0}, {t}).ok());
}

TEST(Protocol, NamesCannotForgeAnAnswer) {
  ModelDescription model = described_model();
  model.name = "a\"},{\"b\xff\n", model.outputs[0].name = "\\\"";
  const HostTensor t = HostTensor::of<float>(DType::f32, {1, 2}, {1, 2});
  const auto answer = print_infer(model, {"\"}", {}, {{0, false}}, 0}, {t});
  ASSERT_TRUE(answer.ok());
  const auto json = nlohmann::json::parse(answer->body, nullptr, false);
  ASSERT_TRUE(json.is_object()) << answer->body;
  EXPECT_EQ(json["id"], "\"}");
  EXPECT_EQ(json["outputs"][0]["name"], "\\\"");
  EXPECT_TRUE(nlohmann::json::parse(print_metadata(model, {"1"}), nullptr, false).is_object());
  EXPECT_TRUE(nlohmann::json::parse(print_error(model.name), nullptr, false).is_object());
}

TEST(Protocol, ControlRequestsAreSmall) {
  EXPECT_EQ(*parse_index(""), false);
  EXPECT_EQ(*parse_index("{\"ready\":true}"), true);
  EXPECT_FALSE(parse_index("{\"ready\":1}").ok());
  EXPECT_FALSE(parse_index("[]").ok());
  EXPECT_TRUE(parse_control("").ok());
  EXPECT_TRUE(parse_control(R"({"parameters":{"unload_dependents":false}})").ok());
  EXPECT_FALSE(parse_control(R"({"parameters":{"config":"{}"}})").ok());
  EXPECT_FALSE(parse_control(std::string(100000, ' ') + "{}").ok());
}

TEST(Protocol, ClassesAreTheLargestValuesOfEachRow) {
  const auto of = [](const Dims& shape, const std::vector<float>& values) {
    HostTensor t = *allocate_tensor(DType::f32, shape, "the output");
    std::copy(values.begin(), values.end(), t.data<float>());
    return t;
  };
  const std::vector<std::string> labels{"cat", "", "a:b"};
  const ClassTexts rows = class_texts(of({2, 4}, {0.5f, 2, -1, 2, NAN, 1, 3, 1}), 3, &labels);
  EXPECT_EQ(rows.shape, (std::vector<int64_t>{2, 3}));
  // Equal values by their numbers, NaN behind all.
  EXPECT_EQ(rows.texts, (std::vector<std::string>{"2:1", "2:3", "0.5:0:cat", "3:2:a:b", "1:1", "1:3"}));
  EXPECT_EQ(rows.bytes().substr(0, 7), std::string("\3\0\0\0"
                                                   "2:1",
                                                   7));
  const ClassTexts flat = class_texts(of({3}, {1e-9f, NAN, INFINITY}), 100, nullptr);
  EXPECT_EQ(flat.shape, (std::vector<int64_t>{3}));
  EXPECT_EQ(flat.texts, (std::vector<std::string>{"inf:2", "1e-09:0", "nan:1"}));
  EXPECT_TRUE(class_texts(of({0, 4}, {}), 2, nullptr).texts.empty());
  HostTensor bytes = *allocate_tensor(DType::u8, Dims{2, 1, 2}, "the output");
  for (int i = 0; i < 4; ++i) bytes.data<uint8_t>()[i] = static_cast<uint8_t>(i * 80);
  EXPECT_EQ(class_texts(bytes, 1, nullptr).texts, (std::vector<std::string>{"80:1", "240:1"}));
}

}  // namespace
}  // namespace sparkle::serve
