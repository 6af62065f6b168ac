// Padding by known examples and by real models: channels become what they should, answers stay to the bit on plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <random>

#include "backends/reference/reference_backend.h"
#include "device/known/known_devices.h"
#include "fix/pad/plan.h"
#include "fix/proof/runs.h"
#include "onnx/test_model.h"

namespace sparkle::fix {
namespace {
namespace fs = std::filesystem;
using sparkle::testing::TestModel;

HostTensor normal(const Dims& shape, uint64_t seed, float around = 0, float spread = 0.3f) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> n(around, spread);
  HostTensor t = HostTensor::zeros(DType::f32, shape);
  for (int64_t i = 0; i < t.elements(); ++i) t.data<float>()[i] = n(random);
  return t;
}
HostTensor list(const std::vector<int64_t>& values) {
  return HostTensor::of(DType::i64, {static_cast<int64_t>(values.size())}, values);
}

Document document(const TestModel& m) {
  auto doc = Document::take(m.model, "test.onnx");
  EXPECT_TRUE(doc.ok()) << doc.error().message;
  return std::move(*doc);
}

struct Padded {
  Document doc;
  PadPlan plan;
  std::map<std::string, TensorInfo> before, after;
  const Dims& shape(const std::string& name) const { return after.at(name).shape; }
};

// Pads, and compares every output to the bit.
Padded padded(Document doc, PadOptions options = {}, const std::map<std::string, Dims>& shapes = {}) {
  Document original = doc;
  auto graph = doc.to_graph();
  auto bindings = bindings_of(*graph, shapes);
  EXPECT_TRUE(bindings.ok()) << bindings.error().message;
  auto tensors = infer_tensors(doc, *bindings);
  EXPECT_TRUE(tensors.ok()) << tensors.error().message;
  PadPlan plan = plan_padding(doc, *tensors, options);
  const Status applied = apply_padding(doc, plan, *tensors);
  EXPECT_TRUE(applied.ok()) << applied.error().message;
  auto after = infer_tensors(doc, *bindings);
  EXPECT_TRUE(after.ok()) << after.error().message;
  if (!after.ok()) return {std::move(doc), std::move(plan), std::move(*tensors), {}};
  const auto inputs = random_inputs(*graph, *bindings, 7);
  auto before_run = Runner::open(original, make_reference_backend()), after_run = Runner::open(doc, make_reference_backend());
  EXPECT_TRUE(before_run.ok() && after_run.ok()) << (after_run.ok() ? "" : after_run.error().message);
  auto want = before_run->run(inputs), have = after_run->run(inputs);
  EXPECT_TRUE(want.ok() && have.ok()) << (have.ok() ? want.error().message : have.error().message);
  for (size_t o = 0; o < want->size(); ++o) {
    EXPECT_EQ((*want)[o].shape, (*have)[o].shape);
    EXPECT_EQ(std::memcmp((*want)[o].bytes.get(), (*have)[o].bytes.get(), static_cast<size_t>((*want)[o].size_bytes())), 0)
        << "output " << o << " differs";
  }
  return {std::move(doc), std::move(plan), std::move(*tensors), std::move(*after)};
}

TEST(Padding, ThreeSixtySevenOneTwentyNine) {
  TestModel m(13);
  m.input("x", {1, 3, 9, 9}).output("y");
  m.constant("w1", normal({67, 3, 3, 3}, 1)).constant("b1", normal({67}, 2)).constant("w2", normal({129, 67, 3, 3}, 3));
  m.node("Conv", {"x", "w1", "b1"}, {"a"}).node("Relu", {"a"}, {"r"}).node("Conv", {"r", "w2"}, {"y"});
  const Padded p = padded(document(m));
  EXPECT_EQ(p.shape("w1"), Dims({72, 8, 3, 3}));
  EXPECT_EQ(p.shape("b1"), Dims({72}));
  EXPECT_EQ(p.shape("w2"), Dims({136, 72, 3, 3}));
  EXPECT_EQ(p.shape("r")[1], 72);
  EXPECT_EQ(p.shape("y")[1], 129);
  ASSERT_EQ(p.plan.chains.size(), 1u);
  EXPECT_LT(p.plan.chains[0].extra(), 0.25);
}

// The cost model of `check` decides where a target is given: on a device whose vectors take any number nothing grows, and an
// odd stem stays where a copy of the picture costs more than its layers save.
TEST(Padding, GrowsWhereItPays) {
  const auto network = [](int64_t size, int64_t channels) {
    TestModel m(13);
    m.input("x", {1, channels, size, size}).output("y");
    m.constant("w1", normal({67, channels, 3, 3}, 1))
        .constant("w2", normal({129, 67, 3, 3}, 3))
        .constant("w3", normal({8, 129, 1, 1}, 3));
    m.node("Conv", {"x", "w1"}, {"a"})
        .node("Relu", {"a"}, {"r"})
        .node("Conv", {"r", "w2"}, {"c"})
        .node("Conv", {"c", "w3"}, {"y"});
    return document(m);
  };
  const auto options = [](const char* device, Precision precision) {
    return default_padding(*known_device(device), precision);
  };
  const Padded all = padded(network(112, 60), options("a100", Precision::fp16));
  EXPECT_EQ(all.shape("w1"), Dims({72, 64, 3, 3}));
  EXPECT_EQ(all.shape("w2"), Dims({136, 72, 3, 3}));
  ASSERT_EQ(all.plan.chains.size(), 1u);
  EXPECT_LT(all.plan.chains[0].after_seconds, all.plan.chains[0].before_seconds);
  EXPECT_GT(all.plan.chains[0].border_seconds, 0);
  for (const auto& p : all.plan.products) {
    EXPECT_GT(p.before_seconds, 0) << p.name;
    EXPECT_GT(p.after_seconds, 0) << p.name;
  }
  const Padded part = padded(network(12, 3), options("h200", Precision::fp16));
  EXPECT_EQ(part.shape("w1"), Dims({72, 3, 3, 3}));
  ASSERT_FALSE(part.plan.refused.empty());
  EXPECT_NE(part.plan.refused[0].why.find("no gain"), std::string::npos) << part.plan.refused[0].why;
  PadOptions anyway = options("h200", Precision::fp16);
  anyway.anyway = true;
  EXPECT_EQ(padded(network(12, 3), anyway).shape("w1"), Dims({72, 8, 3, 3}));
  EXPECT_TRUE(padded(network(12, 3), options("avx512", Precision::fp32)).plan.empty());
}

TEST(Padding, FeaturesOfClassifiers) {
  TestModel m(13);
  m.input("x", {2, 129}).output("y");
  m.constant("w", normal({251, 129}, 1)).constant("b", normal({251}, 2));
  m.node("Gemm", {"x", "w", "b"}, {"y"}).with("transB", int64_t{1});
  const Padded p = padded(document(m));
  EXPECT_EQ(p.shape("w"), Dims({256, 136}));
  EXPECT_EQ(p.shape("b"), Dims({256}));
  EXPECT_EQ(p.shape("y"), Dims({2, 251}));
}

TEST(Padding, ExtraArithmeticHasALimit) {
  TestModel m(13);
  m.input("x", {1, 1, 8, 8}).output("y");
  m.constant("w", normal({9, 1, 3, 3}, 1));
  m.node("Conv", {"x", "w"}, {"y"});
  const Padded p = padded(document(m));
  EXPECT_TRUE(p.plan.empty());
  EXPECT_FALSE(p.plan.refused.empty());
  const Padded all = padded(document(m), {8, 100});
  EXPECT_EQ(all.shape("w"), Dims({16, 8, 3, 3}));
}

// Concatenations keep a gap behind each part, shortcuts bring runs together, gates of sigmoids hold a half where nothing is.
TEST(Padding, ConcatResidualAndGate) {
  TestModel m(13);
  m.input("x", {1, 5, 6, 6}).output("y").output("side");
  m.constant("wa", normal({12, 5, 3, 3}, 1)).constant("wb", normal({21, 5, 3, 3}, 2)).constant("wc", normal({33, 33, 1, 1}, 3));
  m.constant("wg", normal({33, 33, 1, 1}, 4)).constant("wd", normal({33, 1, 3, 3}, 5)).constant("we", normal({7, 33, 1, 1}, 6));
  for (const char* name : {"s", "b", "mean"}) m.constant(name, normal({33}, 8));
  m.constant("var", normal({33}, 9, 1, 0.01f)).constant("shift", normal({33, 1, 1}, 10));
  m.node("Conv", {"x", "wa"}, {"a"})
      .node("Conv", {"x", "wb"}, {"b1"})
      .node("Concat", {"a", "b1"}, {"ab"})
      .with("axis", int64_t{1});
  m.node("BatchNormalization", {"ab", "s", "b", "mean", "var"}, {"n"}).node("Relu", {"n"}, {"nr"});
  m.node("Conv", {"nr", "wc"}, {"c"}).node("Add", {"c", "nr"}, {"r"}).node("Add", {"r", "shift"}, {"rs"});
  m.node("GlobalAveragePool", {"rs"}, {"g"}).node("Conv", {"g", "wg"}, {"gw"}).node("Sigmoid", {"gw"}, {"gs"});
  m.node("Mul", {"rs", "gs"}, {"gated"}).node("Conv", {"gated", "wd"}, {"side"});
  m.with("group", int64_t{33}).with("pads", std::vector<int64_t>{1, 1, 1, 1});
  m.node("MaxPool", {"side"}, {"p"}).with("kernel_shape", std::vector<int64_t>{2, 2});
  m.node("Conv", {"p", "we"}, {"y"});
  const Padded p = padded(document(m), {8, 1});
  EXPECT_EQ(p.shape("ab")[1], 16 + 24);
  EXPECT_EQ(p.shape("wc"), Dims({40, 40, 1, 1}));
  EXPECT_EQ(p.shape("wd"), Dims({40, 1, 3, 3}));
  EXPECT_EQ(p.shape("we"), Dims({8, 40, 1, 1}));
}

TEST(Padding, ShortcutsWithoutWeights) {
  TestModel m(13);
  m.input("x", {1, 3, 8, 8}).output("y");
  m.constant("w1", normal({12, 3, 1, 1}, 1))
      .constant("w2", normal({20, 12, 1, 1}, 2))
      .constant("pads", list({0, 4, 0, 0, 0, 4, 0, 0}));
  m.node("Conv", {"x", "w1"}, {"a"})
      .node("Conv", {"a", "w2"}, {"b"})
      .node("Pad", {"a", "pads"}, {"s"})
      .node("Add", {"b", "s"}, {"y"});
  const Padded p = padded(document(m), {8, 9});
  EXPECT_EQ(p.shape("w1")[0], 16);
  EXPECT_EQ(p.shape("w2"), Dims({24, 16, 1, 1}));  // runs of 4, 12 and 4: the middle one is enough
}

TEST(Padding, GroupsGrowAlike) {
  TestModel m(13);
  m.input("x", {1, 8, 5, 5}).output("y");
  m.constant("w1", normal({12, 8, 1, 1}, 1)).constant("w2", normal({20, 6, 3, 3}, 2)).constant("w3", normal({8, 20, 1, 1}, 3));
  m.node("Conv", {"x", "w1"}, {"a"})
      .node("Conv", {"a", "w2"}, {"b"})
      .with("group", int64_t{2})
      .node("Conv", {"b", "w3"}, {"y"});
  const Padded p = padded(document(m), {8, 9});
  EXPECT_EQ(p.shape("w1"), Dims({16, 8, 1, 1}));
  EXPECT_EQ(p.shape("w2"), Dims({32, 8, 3, 3}));
  EXPECT_EQ(p.shape("w3"), Dims({8, 32, 1, 1}));
}

// Attention: `heads` heads of `size`, one product for queries, keys and values.
TestModel attention(int64_t heads, int64_t size) {
  const int64_t all = heads * size;
  TestModel m(13);
  m.input("x", {1, 10, 32}).output("y");
  m.constant("wqkv", normal({32, 3 * all}, 1)).constant("bqkv", normal({3 * all}, 2)).constant("wo", normal({all, 32}, 3));
  m.constant("split", list({0, 0, heads, size}))
      .constant("join", list({0, 0, all}))
      .constant("scale", HostTensor::of(DType::f32, {}, std::vector<float>{0.3f}));
  m.constant("three", list({all, all, all}));
  m.node("MatMul", {"x", "wqkv"}, {"qkv0"})
      .node("Add", {"qkv0", "bqkv"}, {"qkv"})
      .node("Split", {"qkv", "three"}, {"q0", "k0", "v0"})
      .with("axis", int64_t{2});
  for (const std::string t : {"q", "k", "v"}) {
    m.node("Reshape", {t + "0", "split"}, {t + "1"});
    m.node("Transpose", {t + "1"}, {t})
        .with("perm", t == "k" ? std::vector<int64_t>{0, 2, 3, 1} : std::vector<int64_t>{0, 2, 1, 3});
  }
  m.node("MatMul", {"q", "k"}, {"s0"})
      .node("Mul", {"s0", "scale"}, {"s"})
      .node("Softmax", {"s"}, {"p"})
      .node("MatMul", {"p", "v"}, {"o0"});
  m.node("Transpose", {"o0"}, {"o1"})
      .with("perm", std::vector<int64_t>{0, 2, 1, 3})
      .node("Reshape", {"o1", "join"}, {"o"})
      .node("MatMul", {"o", "wo"}, {"y"});
  return m;
}

TEST(Padding, HeadsAreNamed) {
  for (const auto& [size, to] : {std::pair<int64_t, int64_t>{12, 16}, {24, 24}, {48, 48}}) {
    const Padded p = padded(document(attention(3, size)), {8, 1});
    ASSERT_EQ(p.plan.heads.size(), 3u);
    EXPECT_EQ(p.plan.channels.size(p.plan.heads[0].runs), size);
    EXPECT_EQ(p.shape("wqkv"), Dims({32, 9 * to}));
    EXPECT_EQ(p.shape("wo"), Dims({3 * to, 32}));
    const auto lines = to_lines(p.plan);
    const std::string want = "3 heads of " + std::to_string(size);
    EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), [&](const std::string& l) {
      return l.find(want) != std::string::npos;
    })) << want;
  }
  const Padded wide = padded(document(attention(3, 24)), {16, 9});
  EXPECT_EQ(wide.shape("wo"), Dims({96, 32}));
}

// Where padding would change what comes out, it stops: sums over channels, divisions, logarithms.
TEST(Padding, StopsWhereZerosCount) {
  for (const std::string type : {"Log", "Reciprocal", "Softmax", "LayerNormalization", "ReduceMean", "ArgMax", "Div"}) {
    TestModel m(17);
    m.input("x", {1, 8, 5, 5}).output("y");
    m.constant("w1", normal({13, 8, 1, 1}, 1, 0.5f))
        .constant("one", normal({5}, 2, 2))
        .constant("w2", normal({8, 13, 1, 1}, 3))
        .constant("w3", normal({8, 5, 1, 1}, 3));
    m.node("Conv", {"x", "w1"}, {"a0"}).node("Abs", {"a0"}, {"a"});
    if (type == "LayerNormalization")
      m.node(type, {"a", "w13"}, {"b"}).with("axis", int64_t{1}).constant("w13", normal({13, 5, 5}, 4));
    else if (type == "Div") m.node(type, {"a", "a"}, {"b"});
    else if (type == "ReduceMean")
      m.node(type, {"a"}, {"c"}).with("axes", std::vector<int64_t>{1}).node("Add", {"a", "c"}, {"b"});
    else if (type == "ArgMax")
      m.node(type, {"a"}, {"i"})
          .with("axis", int64_t{1})
          .node("Cast", {"i"}, {"c"})
          .with("to", int64_t{1})
          .node("Add", {"a", "c"}, {"b"});
    else if (type == "Softmax") m.node(type, {"a"}, {"b"}).with("axis", int64_t{1});
    else m.node(type, {"a"}, {"b"});
    m.node("Conv", {"b", "w2"}, {"y"});
    const Padded p = padded(document(m), {8, 9});
    EXPECT_EQ(p.shape("w1")[0], 13) << type;
  }
}

// A classifier's softmax sees its own classes alone.
TEST(Padding, SlicesBeforeASoftmaxAtTheEnd) {
  TestModel m(13);
  m.input("x", {1, 16}).output("y");
  m.constant("w1", normal({16, 20}, 1)).constant("w2", normal({20, 10}, 2));
  m.node("MatMul", {"x", "w1"}, {"a"})
      .node("Relu", {"a"}, {"b"})
      .node("MatMul", {"b", "w2"}, {"c"})
      .node("Softmax", {"c"}, {"y"});
  const Padded p = padded(document(m), {8, 9});
  EXPECT_EQ(p.shape("w2"), Dims({24, 16}));
  EXPECT_EQ(p.shape("y"), Dims({1, 10}));
}

TEST(Padding, RealModelsAnswerToTheBit) {
  const fs::path models = fs::path(SPARKLE_SOURCE_DIR) / "../shared/data/models";
  if (!fs::exists(models)) GTEST_SKIP() << "../shared/data is not here";
  int padded_models = 0;
  for (const char* name :
       {"mnist-8", "mnist-cnn", "resnet20-cifar10", "ultraface-rfb-320", "emnist-autoencoder", "mnist-diffusion-vit",
        "synthetic-diffusion-unet", "squeezenet1.1", "mobilenetv2", "style-red-vineyards"}) {
    SCOPED_TRACE(name);
    auto doc = Document::read((models / name / (std::string(name) + ".onnx")).string());
    ASSERT_TRUE(doc.ok()) << doc.error().message;
    std::map<std::string, Dims> shapes;
    if (std::string(name) == "style-red-vineyards") shapes["image"] = {1, 3, 32, 32};
    const Padded p = padded(std::move(*doc), {16, 0.5}, shapes);
    for (const auto& chain : p.plan.chains) EXPECT_LE(chain.extra(), 0.5);
    padded_models += !p.plan.empty();
  }
  EXPECT_GE(padded_models, 6);
}

}  // namespace
}  // namespace sparkle::fix
