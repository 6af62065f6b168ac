// Whole files: structure, contradictions, damage, and every model at hand.
#include "onnx/reader.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "onnx/operators/operators.h"
#include "onnx/node.h"
#include "base/log.h"
#include "onnx/test_model.h"
#include "networks/writer.h"
#include "networks/zoo.h"

namespace sparkle {
namespace {
namespace fs = std::filesystem;
using testing::TestModel;

TestModel relu_model() {
  TestModel model(13);
  model.input("x", {1, 4}).output("y", {1, 4}).node("Relu", {"x"}, {"y"});
  return model;
}

std::string error_text(const TestModel& model) {
  const auto graph = model.read();
  EXPECT_FALSE(graph.ok());
  return graph.ok() ? "" : graph.error().message;
}

TEST(OnnxReader, SortsNodesAndKeepsSymbolicSizes) {
  TestModel model(13);
  model.input("x", {1, 4}).output("y").node("Relu", {"middle"}, {"y"}).node("Neg", {"x"}, {"middle"});
  model.graph().mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_dim_param("N");
  const auto graph = model.read();
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  EXPECT_EQ(graph->ops[0].type, "Neg");
  EXPECT_EQ(graph->ops[0].name, "Neg_1");
  const GraphTensor& x = graph->tensor(graph->inputs[0]);
  EXPECT_FALSE(x.known);
  EXPECT_TRUE(x.rank_known);
  EXPECT_EQ(x.shape, (Dims{-1, 4}));
  EXPECT_EQ(x.axis_names[0], "N");
}

TEST(OnnxReader, InitializersListedAsInputsAreNoInputs) {
  TestModel model = relu_model();
  model.input("w", {4}).constant("w", HostTensor::zeros(DType::f32, {4}));
  const auto graph = model.read();
  ASSERT_TRUE(graph.ok());
  EXPECT_EQ(graph->inputs.size(), 1u);
}

TEST(OnnxReader, ContradictionsAreErrorsThatNameThem) {
  EXPECT_NE(error_text(relu_model().node("Neg", {"nothing"}, {"z"})).find("'nothing'"), std::string::npos);
  EXPECT_NE(error_text(relu_model().node("Neg", {"x"}, {"y"})).find("twice"), std::string::npos);
  EXPECT_NE(error_text(relu_model().node("Neg", {"b"}, {"a"}).node("Neg", {"a"}, {"b"})).find("cycle"), std::string::npos);
  EXPECT_NE(error_text(relu_model().output("z")).find("'z'"), std::string::npos);
  EXPECT_NE(error_text(relu_model().input("x", {1})).find("twice"), std::string::npos);
  EXPECT_NE(error_text(relu_model().input("v", {1, 1, 1, 1, 1, 1, 1, 1, 1})).find("9 axes"), std::string::npos);
  const auto nine = relu_model().input("v", {1, 1, 1, 1, 1, 1, 1, 1, 1}).read();  // which ONNX allows
  EXPECT_EQ(nine.error().reason, Reason::operator_not_served);
  EXPECT_NE(error_text(relu_model().input("v", {-3})).find("negative"), std::string::npos);
  EXPECT_NE(error_text(relu_model().input("v", {1LL << 40, 1LL << 40})).find("addressed"), std::string::npos);
  TestModel future = relu_model();
  future.model.mutable_opset_import(0)->set_version(kNewestOpset + 1);
  EXPECT_NE(error_text(future).find("opset"), std::string::npos);
  TestModel none = relu_model();
  none.model.clear_opset_import();
  EXPECT_NE(error_text(none).find("opset_import"), std::string::npos);
}

TEST(OnnxReader, DamagedTensors) {
  const auto with = [](auto change) {
    TestModel model = relu_model();
    model.constant("w", HostTensor::zeros(DType::f32, {4}));
    change(*model.graph().mutable_initializer(0));
    const auto graph = model.read();
    return graph.ok() ? std::string() : graph.error().message;
  };
  EXPECT_EQ(with([](auto&) {}), "");
  EXPECT_NE(with([](auto& t) { t.set_dims(0, 5); }).find("needs 20"), std::string::npos);
  EXPECT_NE(with([](auto& t) { t.set_dims(0, -4); }).find("negative"), std::string::npos);
  EXPECT_NE(with([](auto& t) { t.set_dims(0, INT64_MAX); }).find("addressed"), std::string::npos);
  EXPECT_NE(with([](auto& t) { t.set_data_type(8); }).find("STRING"), std::string::npos);
  EXPECT_NE(with([](auto& t) { t.clear_raw_data(); }).find("0 elements"), std::string::npos);
  EXPECT_EQ(with([](auto& t) {
              t.clear_raw_data();
              for (int i = 0; i < 4; ++i) t.add_float_data(1);
            }),
            "");
  for (const char* path : {"../secret", "beside"})
    EXPECT_NE(with([&](auto& t) {
                t.set_data_location(::onnx::TensorProto::EXTERNAL);
                auto& entry = *t.add_external_data();
                entry.set_key("location");
                entry.set_value(path);
              }).find("not read from a folder"),
              std::string::npos);
}

// The text with everything that is wrong in it.
std::string refusal(const TestModel& model) {
  const auto graph = model.read();
  return graph.ok() ? "" : graph.error().message;
}

TEST(OnnxReader, AllContradictionsAreSaidAtOnce) {
  TestModel model(13);
  model.input("x", {1, 4}).output("y");
  model.node("Conv", {"x"}, {"a"}).node("Gelu", {"x"}, {"b"}).node("Foo", {"x"}, {"c"}).node("Conv", {"c"}, {"y"});
  const auto graph = model.read();
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.error().reason, Reason::bad_model);
  EXPECT_EQ(graph.error().message,
            "'test.onnx' contradicts itself or the ONNX specification in 4 places (Conv x2, Gelu x1, Foo x1); mend the model.\n"
            "  Conv x2: it lacks its input 1: 'Conv_0', 'Conv_3'\n"
            "  Gelu x1: the model imports opset 13, but this operator came with opset 20: 'Gelu_1'\n"
            "  Foo x1: ONNX has no operator of this name: 'Foo_2'");
}

// An opset has the operators, inputs and outputs of its time and no others.
TEST(OnnxReader, OpsetsHaveWhatTheyHave) {
  const auto one = [](int64_t opset, const std::string& type, const std::vector<std::string>& inputs) {
    TestModel model(opset);
    model.input("x", {1, 4}).input("s", {1}).output("y").node(type, inputs, {"y"});
    return refusal(model);
  };
  EXPECT_EQ(one(20, "Gelu", {"x"}), "");
  EXPECT_NE(one(19, "Gelu", {"x"}).find("imports opset 19, but this operator came with opset 20"), std::string::npos);
  EXPECT_NE(one(10, "Upsample", {"x", "s"}).find("was withdrawn with opset 10"), std::string::npos);
  EXPECT_EQ(one(11, "Clip", {"x", "s"}), "");
  EXPECT_NE(one(10, "Clip", {"x", "s"}).find("it has 2 inputs, in opset 10 it has at most 1"), std::string::npos);
  for (const auto& theme : operator_themes())  // every reader has its row in the table
    for (const OperatorRow& row : theme) EXPECT_NE(versions_of(row.type), nullptr) << row.type;
}

TEST(OnnxReader, OneVersionOfEachSetOfOperators) {
  const auto importing = [](int64_t second, const std::string& domain) {
    TestModel model = relu_model();
    auto& entry = *model.model.add_opset_import();
    entry.set_version(second);
    entry.set_domain(domain);
    return refusal(model);
  };
  EXPECT_EQ(importing(13, ""), "");
  EXPECT_EQ(importing(1, "ai.onnx.ml"), "");
  for (const char* domain : {"", "ai.onnx"})
    EXPECT_NE(importing(7, domain).find("imports two versions of the operators of 'ai.onnx', 13 and 7"), std::string::npos)
        << importing(7, domain);
  TestModel other = relu_model();
  other.node("Bar", {"x"}, {"z"}).output("z");
  other.graph().mutable_node(1)->set_domain("com.example");
  EXPECT_NE(refusal(other).find("of a domain of which the model imports no version"), std::string::npos);
}

// Before opset 7 inputs are of one shape unless the operator says 'broadcast'; Sum and its like broadcast since opset 8.
TEST(OnnxReader, OldOpsetsBroadcastWhereTheySaySo) {
  const auto bound = [](int64_t opset, const std::string& type, int64_t flag, bool ranks) -> std::string {
    TestModel model(opset);
    model.input("x", {2, 3}).input("v", ranks ? std::vector<int64_t>{1, 3} : std::vector<int64_t>{3}).output("y");
    model.node(type, {"x", "v"}, {"y"});
    if (flag >= 0) model.with("broadcast", flag);
    const auto graph = model.read();
    if (!graph.ok()) return graph.error().message;
    const auto done = bind(*graph, {{{2, 3}, {}}, {graph->tensor(graph->inputs[1]).shape, {}}});
    return done.ok() ? "" : done.error().message;
  };
  for (bool ranks : {false, true}) {
    EXPECT_EQ(bound(7, "Add", -1, ranks), "");
    EXPECT_EQ(bound(6, "Add", 1, ranks), "");
    EXPECT_NE(bound(6, "Add", -1, ranks).find("'broadcast'"), std::string::npos) << bound(6, "Add", -1, ranks);
    EXPECT_NE(bound(6, "Mul", 0, ranks).find("'broadcast'"), std::string::npos);
    EXPECT_NE(bound(7, "Max", -1, ranks).find("'broadcast'"), std::string::npos);
    EXPECT_EQ(bound(8, "Max", -1, ranks), "");
  }
  TestModel gemm(6);
  gemm.input("a", {2, 3}).input("b", {3, 4}).input("c", {4}).output("y").node("Gemm", {"a", "b", "c"}, {"y"});
  auto graph = gemm.read();
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  EXPECT_FALSE(bind(*graph, {{{2, 3}, {}}, {{3, 4}, {}}, {{4}, {}}}).ok());
  graph = gemm.with("broadcast", int64_t{1}).read();
  EXPECT_TRUE(bind(*graph, {{{2, 3}, {}}, {{3, 4}, {}}, {{4}, {}}}).ok());
}

TEST(OnnxReader, OutputsAreWhatTheModelDeclares) {
  const auto bound = [](std::vector<int64_t> declared, DType type) -> std::string {
    TestModel model(13);
    model.input("x", {2, 3}).output("y", declared, type).node("Relu", {"x"}, {"y"});
    const auto graph = model.read();
    if (!graph.ok()) return graph.error().message;
    const auto done = bind(*graph, {{{2, 3}, {}}});
    return done.ok() ? "" : done.error().message;
  };
  EXPECT_EQ(bound({2, 3}, DType::f32), "");
  EXPECT_EQ(bound({}, DType::f32), "");
  EXPECT_NE(bound({2, 3}, DType::bf16).find("tensor 'y': the model declares this output as bf16, but its nodes compute f32"),
            std::string::npos);
}

// Sizes that tools have left behind: the real ones hold, and are said.
TEST(OnnxReader, SizesOfOutputsAreThoseThatTheNodesCompute) {
  static std::string said;
  const auto bound = [](TestModel& model, const Dims& want) {
    said.clear();
    const auto graph = model.read();
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    EXPECT_FALSE(graph->tensor(graph->outputs[0]).known);  // nothing may trust what is only declared
    set_log([](void*, LogLevel level,
               const char* line) { said += (level == LogLevel::warning ? "" : "no warning: ") + std::string(line); },
            nullptr);
    const auto done = bind(*graph, {{{2, 3}, {}}});
    set_log(nullptr, nullptr);
    ASSERT_TRUE(done.ok()) << done.error().message;
    EXPECT_EQ(done->tensor(done->outputs[0]).shape, want);
  };
  const auto relu = [](std::vector<int64_t> declared) {
    TestModel model(13);
    model.input("x", {2, 3}).output("y", declared).node("Relu", {"x"}, {"y"});
    return model;
  };
  TestModel longer = relu({2, 4}), flat = relu({6}), right = relu({2, 3});
  bound(longer, {2, 3});
  EXPECT_EQ(
      said,
      "'test': the model declares its output 'y' with the shape 2x4, but for these inputs its nodes compute 2x3, which is "
      "what it has.");
  bound(flat, {2, 3});
  EXPECT_NE(said.find("with the shape 6, but"), std::string::npos) << said;
  bound(right, {2, 3});
  EXPECT_EQ(said, "");
  TestModel part(13), between(13);  // of the input's own shape by declaration alone
  const auto ints = [](int64_t value) { return HostTensor::of(DType::i64, {1}, std::vector<int64_t>{value}); };
  part.input("x", {2, 3}).output("y", {2, 3}).constant("b", ints(1)).constant("e", ints(2));
  bound(part.node("Slice", {"x", "b", "e"}, {"y"}), {1, 3});
  EXPECT_NE(said.find("compute 1x3"), std::string::npos) << said;
  between.input("x", {2, 3}).output("y").constant("b", ints(1)).constant("e", ints(2));
  auto& info = *between.graph().add_value_info();
  info = between.graph().input(0);
  info.set_name("t");
  bound(between.node("Slice", {"x", "b", "e"}, {"t"}).node("Relu", {"t"}, {"y"}), {1, 3});
}

// The file is there, its place is what is wrong: below a folder beside the model's, at the end of a link, or no file of bytes.
TEST(OnnxReader, ExternalDataOutsideTheFolderIsRefused) {
  const fs::path parent = fs::path(::testing::TempDir()) / "sparkle_external_outside", folder = parent / "model";
  fs::remove_all(parent);
  fs::create_directories(folder / "sub");
  std::ofstream(parent / "secret.bin", std::ios::binary).write("0123456789abcdef", 16);
  fs::create_symlink(parent / "secret.bin", folder / "link.bin");
  fs::create_directory_symlink(parent, folder / "up");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  const auto refused = [&](const std::string& location) {
    TestModel model = relu_model();
    model.constant("w", HostTensor::zeros(DType::f32, {4})).output("w");
    auto& tensor = *model.graph().mutable_initializer(0);
    tensor.clear_raw_data();
    tensor.set_data_location(::onnx::TensorProto::EXTERNAL);
    auto& entry = *tensor.add_external_data();
    entry.set_key("location");
    entry.set_value(location);
    std::ofstream(folder / "model.onnx", std::ios::binary) << model.bytes();
    const auto graph = read_onnx((folder / "model.onnx").string());
    return graph.ok() ? std::string() : graph.error().message;
  };
  for (const std::string& location : {std::string("../secret.bin"), (parent / "secret.bin").string(), std::string("link.bin"),
                                      std::string("up/secret.bin"), std::string("sub/../../secret.bin"), std::string()}) {
    const std::string said = refused(location);
    EXPECT_NE(said.find("'w'"), std::string::npos) << location << ": " << said;
    EXPECT_NE(said.find("'" + location + "', which is not inside the model's folder"), std::string::npos) << said;
  }
  EXPECT_NE(refused(std::string("w.bin\0x", 7)).find("whose name holds a byte of value 0"), std::string::npos);
  for (const char* location : {"pipe", "sub", "."})
    EXPECT_NE(refused(location).find("not a regular file"), std::string::npos) << location << ": " << refused(location);
  fs::remove_all(parent);
}

TEST(OnnxReader, ExternalDataInsideTheFolder) {
  const fs::path folder = fs::path(::testing::TempDir()) / "sparkle_external";
  fs::create_directories(folder);
  const std::vector<float> values{1, 2, 3, 4};
  std::ofstream(folder / "weights.bin", std::ios::binary)
      .write("skip", 4)
      .write(reinterpret_cast<const char*>(values.data()), 16);
  TestModel model = relu_model();
  model.constant("w", HostTensor::zeros(DType::f32, {4})).output("w");
  auto& tensor = *model.graph().mutable_initializer(0);
  tensor.clear_raw_data();
  tensor.set_data_location(::onnx::TensorProto::EXTERNAL);
  const auto entry = [&](const char* key, const char* value) {
    auto& e = *tensor.add_external_data();
    e.set_key(key);
    e.set_value(value);
  };
  entry("location", "weights.bin");
  entry("offset", "4");
  entry("length", "16");
  std::ofstream(folder / "model.onnx", std::ios::binary) << model.bytes();
  const auto graph = read_onnx((folder / "model.onnx").string());
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  EXPECT_EQ(graph->tensor(graph->outputs[1]).constant->data<float>()[3], 4);
  // The same where it lies in the file: what is read is what is there by then.
  const auto mapped = read_onnx((folder / "model.onnx").string(), ExternalData::mapped);
  ASSERT_TRUE(mapped.ok()) << mapped.error().message;
  EXPECT_EQ(mapped->tensor(mapped->outputs[1]).constant->data<float>()[3], 4);
  std::fstream(folder / "weights.bin", std::ios::binary | std::ios::in | std::ios::out).seekp(16).write("\0\0\0\0", 4);
  EXPECT_EQ(mapped->tensor(mapped->outputs[1]).constant->data<float>()[3], 0) << "it was copied";
  EXPECT_EQ(graph->tensor(graph->outputs[1]).constant->data<float>()[3], 4);
  // Offsets at which no float may lie are copied.
  tensor.mutable_external_data(1)->set_value("3");
  std::ofstream(folder / "model.onnx", std::ios::binary) << model.bytes();
  EXPECT_TRUE(read_onnx((folder / "model.onnx").string(), ExternalData::mapped).ok());
  tensor.mutable_external_data(1)->set_value("8");
  std::ofstream(folder / "model.onnx", std::ios::binary) << model.bytes();
  EXPECT_FALSE(read_onnx((folder / "model.onnx").string()).ok());
}

// Never a crash, whatever the bytes; most damage is an Error.
TEST(OnnxReader, SurvivesDamage) {
  const auto network = zoo_network("tiny_residual", {3, true, 1});
  ASSERT_TRUE(network.ok());
  const auto written = onnx_bytes(*network);
  ASSERT_TRUE(written.ok()) << written.error().message;
  const std::string& good = *written;
  for (size_t length = 0; length < good.size(); length += 1 + length / 50)
    EXPECT_FALSE(read_onnx_bytes(std::as_bytes(std::span(good).first(length)), "", "cut").ok()) << length;
  std::mt19937 random(20240607);
  for (int i = 0; i < 1500; ++i) {
    std::string bad = good;
    for (uint32_t flips = 1 + random() % 4; flips > 0; --flips)
      bad[random() % bad.size()] ^= static_cast<char>(1 << (random() % 8));
    (void)read_onnx_bytes(std::as_bytes(std::span(bad)), "", "flipped").ok();
  }
}

TEST(OnnxReader, ReadsEveryModelAtHand) {
  const fs::path data = fs::path(SPARKLE_SOURCE_DIR) / "../shared/data";
  if (!fs::exists(data / "models")) GTEST_SKIP() << "no folder ../shared/data/models beside the source tree";
  int whole = 0, partly = 0;
  for (const char* folder : {"models", "onnx-conformance"})
    for (const auto& entry : fs::recursive_directory_iterator(data / folder)) {
      if (entry.path().extension() != ".onnx") continue;
      const auto graph = read_onnx(entry.path().string());
      if (!graph.ok()) {
        EXPECT_NE(graph.error().reason, Reason::internal);
        EXPECT_NE(graph.error().message.find(entry.path().string()), std::string::npos) << graph.error().message;
        continue;
      }
      bool unknown = false;
      for (const Op& op : graph->ops) unknown = unknown || std::holds_alternative<UnknownOp>(op.params);
      (unknown ? partly : whole)++;
    }
  RecordProperty("read_whole", whole);
  EXPECT_GE(whole, 650);
}

}  // namespace
}  // namespace sparkle
