// Rules one by one, precision by small models of which one knows what must come, and networks of the zoo through all of it.
#include "fix/fix.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "backends/reference/reference_backend.h"
#include "fix/precision/wide_search.h"
#include "fix/quantize/cut.h"
#include "fix/rewrites/exact.h"
#include "fix/rewrites/raise_opset.h"
#include "networks/writer.h"
#include "networks/zoo.h"
#include "onnx/test_model.h"

namespace sparkle::fix {
namespace {
using sparkle::testing::TestModel;

HostTensor normal(const Dims& shape, uint64_t seed, float spread = 0.3f) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> n(0, spread);
  HostTensor t = HostTensor::zeros(DType::f32, shape);
  for (int64_t i = 0; i < t.elements(); ++i) t.data<float>()[i] = n(random);
  return t;
}
HostTensor floats(const std::vector<float>& values) {
  return HostTensor::of(DType::f32, {static_cast<int64_t>(values.size())}, values);
}

Document document(const ::onnx::ModelProto& model) {
  auto doc = Document::take(model, "test.onnx");
  EXPECT_TRUE(doc.ok()) << doc.error().message;
  return std::move(*doc);
}
std::vector<InputBinding> bindings(const Document& doc) { return *bindings_of(*doc.to_graph(), {}); }

std::string types_of(const Document& doc) {
  std::string types;
  for (const auto& node : doc.graph().node()) types += (types.empty() ? "" : " ") + node.op_type();
  return types;
}

TEST(FixRules, ConstantsAreFolded) {
  TestModel m(13);
  m.input("x", {1, 4}).output("y").constant("a", floats({1, 2, 3, 4})).constant("b", floats({1, 1, 1, 1}));
  m.node("Add", {"a", "b"}, {"c"}).node("Neg", {"c"}, {"d"}).node("Mul", {"x", "d"}, {"y"});
  Document doc = document(m.model);
  const auto lines = fold_constants(doc, *constants_of(doc, bindings(doc)));
  EXPECT_EQ(lines.size(), 2u);
  EXPECT_EQ(types_of(doc), "Mul");
  EXPECT_EQ(doc.constant("d")->data<float>()[3], -5);
  EXPECT_FALSE(doc.is_constant("a"));
}

TEST(FixRules, BatchNormalizationGoesIntoTheProduct) {
  TestModel m(13);
  m.input("x", {1, 2, 3, 3}).output("y").constant("w", normal({2, 2, 1, 1}, 1));
  m.constant("s", floats({2, 3})).constant("b", floats({1, -1})).constant("m", floats({0.5f, 0})).constant("v", floats({1, 4}));
  m.node("Conv", {"x", "w"}, {"c"}).node("BatchNormalization", {"c", "s", "b", "m", "v"}, {"y"}).with("epsilon", 0.f);
  Document doc = document(m.model);
  const HostTensor w = *doc.constant("w");
  EXPECT_EQ(fold_batch_normalization(doc).size(), 1u);
  EXPECT_EQ(types_of(doc), "Conv");
  EXPECT_EQ(doc.constant("w")->data<float>()[0], 2 * w.data<float>()[0]);
  EXPECT_EQ(doc.constant("w")->data<float>()[3], 1.5f * w.data<float>()[3]);
  EXPECT_EQ(doc.constant("w_bias")->data<float>()[0], 0);
  EXPECT_EQ(doc.constant("w_bias")->data<float>()[1], -1);
  EXPECT_EQ(doc.graph().node(0).output(0), "y");
}

TEST(FixRules, LayoutChangesMerge) {
  TestModel m(13);
  m.input("x", {1, 2, 3, 4}).output("y").output("z");
  m.node("Transpose", {"x"}, {"a"}).with("perm", std::vector<int64_t>{0, 2, 3, 1}).node("Transpose", {"a"}, {"b"});
  m.with("perm", std::vector<int64_t>{0, 3, 1, 2}).node("Relu", {"b"}, {"y"}).node("Transpose", {"a"}, {"c"});
  m.with("perm", std::vector<int64_t>{3, 2, 1, 0}).node("Neg", {"c"}, {"z"});
  Document doc = document(m.model);
  EXPECT_EQ(merge_layouts(doc).size(), 2u);
  EXPECT_EQ(types_of(doc), "Relu Transpose Neg");
  EXPECT_EQ(*ints_attribute(doc.graph().node(1), "perm"), (std::vector<int64_t>{1, 3, 2, 0}));
}

// Old forms of operators, in the newest: the same answers.
TEST(FixRules, OpsetsAreRaised) {
  TestModel m(9);
  m.input("x", {1, 4, 6, 6}).output("y").constant("w", normal({4, 4, 3, 3}, 1)).constant("scales", floats({1, 1, 2, 2}));
  m.node("Pad", {"x"}, {"p"}).with("pads", std::vector<int64_t>{0, 0, 1, 1, 0, 0, 1, 1}).with("value", 0.5f);
  m.node("Conv", {"p", "w"}, {"c"}).node("Clip", {"c"}, {"k"}).with("min", -0.5f).with("max", 1.5f);
  m.node("Slice", {"k"}, {"s"})
      .with("starts", std::vector<int64_t>{1})
      .with("ends", std::vector<int64_t>{4})
      .with("axes", std::vector<int64_t>{1});
  m.node("Upsample", {"s", "scales"}, {"u"}).with("mode", "nearest").node("Dropout", {"u"}, {"d"}).with("ratio", 0.5f);
  m.node("ReduceMean", {"d"}, {"r"})
      .with("axes", std::vector<int64_t>{2, 3})
      .node("Softmax", {"r"}, {"t"})
      .with("axis", int64_t{1});
  m.node("Squeeze", {"t"}, {"y"}).with("axes", std::vector<int64_t>{2, 3});
  const Document original = document(m.model);
  for (const int64_t opset : {13, 22}) {
    Document doc = original;
    const Status raised = raise_opset(doc, opset, *infer_tensors(doc, bindings(doc)));
    ASSERT_TRUE(raised.ok()) << raised.error().message;
    EXPECT_EQ(doc.opset(), opset);
    auto proof = prove(original, doc, {random_inputs(*original.to_graph(), bindings(original), 3)}, make_reference_backend());
    ASSERT_TRUE(proof.ok()) << proof.error().message;
    EXPECT_TRUE(proof->same_bits());
  }
}

TEST(FixRules, OneAloneIsApplied) {
  TestModel m(13);
  m.input("x", {1, 3, 4, 4})
      .output("y")
      .constant("w", normal({9, 3, 1, 1}, 1))
      .constant("a", floats({2}))
      .constant("b", floats({3}));
  m.node("Mul", {"a", "b"}, {"c"}).node("Conv", {"x", "w"}, {"d"}).node("Mul", {"d", "c"}, {"y"});
  FixOptions options;
  options.only = {"fold_constants"};
  auto result = fix_model(document(m.model), options, make_reference_backend());
  ASSERT_TRUE(result.ok()) << result.error().message;
  ASSERT_EQ(result->report.rewrites.size(), 1u);
  EXPECT_EQ(result->report.rewrites[0].rule, "fold_constants");
  EXPECT_EQ(types_of(result->model), "Conv Mul");
}

// Casts come before them; whoever compares two files layer by layer finds the same names in both.
TEST(FixPrecision, LayersWithoutNamesKeepTheReadersNames) {
  TestModel m(13);
  m.input("x", {1, 8, 4, 4}).output("y").constant("w", normal({8, 8, 3, 3}, 1)).constant("v", normal({8, 8, 1, 1}, 2));
  m.node("Conv", {"x", "w"}, {"a"}).node("Relu", {"a"}, {"b"}).node("Conv", {"b", "v"}, {"y"});
  for (auto& node : *m.model.mutable_graph()->mutable_node()) node.clear_name();
  FixOptions options;
  options.precision = Precision::fp16;
  auto result = fix_model(document(m.model), options, make_reference_backend());
  ASSERT_TRUE(result.ok()) << result.error().message;
  std::vector<std::string> names;
  for (const auto& node : result->model.graph().node())
    if (node.op_type() == "Conv") names.push_back(node.name());
  EXPECT_EQ(names, (std::vector<std::string>{"Conv_0", "Conv_2"}));
}

// The second layer's sums leave fp16: it and who reads them stay wide, the others do not.
TEST(FixPrecision, WhatWouldOverflowStaysWide) {
  TestModel m(13);
  m.input("x", {1, 8}).output("y");
  m.constant("w1", normal({8, 8}, 1, 100))
      .constant("w2", normal({8, 8}, 2, 1000))
      .constant("small", floats({1e-6f}))
      .constant("w3", normal({8, 8}, 3));
  m.node("MatMul", {"x", "w1"}, {"a"})
      .node("MatMul", {"a", "w2"}, {"b"})
      .node("Mul", {"b", "small"}, {"c"})
      .node("MatMul", {"c", "w3"}, {"y"});
  FixOptions options;
  options.precision = Precision::fp16;
  auto result = fix_model(document(m.model), options, make_reference_backend());
  ASSERT_TRUE(result.ok()) << result.error().message;
  ASSERT_EQ(result->report.wide.size(), 2u);
  EXPECT_EQ(result->report.wide[0].layer, "MatMul_1");
  EXPECT_NE(result->report.wide[0].why.find("65504"), std::string::npos);
  EXPECT_EQ(result->model.constant("w1")->dtype, DType::f16);
  EXPECT_EQ(result->model.constant("w2")->dtype, DType::f32);
  EXPECT_EQ(result->model.constant("w3")->dtype, DType::f16);
  const auto tensors = infer_tensors(result->model, bindings(result->model));
  EXPECT_EQ(tensors->at("b").dtype, DType::f32);
  EXPECT_EQ(tensors->at("y").dtype, DType::f32);
}

TEST(FixPrecision, RefusesAndNamesTheLayer) {
  TestModel m(13);
  // A difference of two large numbers: nothing of it is left in 16 bits.
  m.input("x", {1, 8}).output("y").constant("w", normal({8, 8}, 1)).constant("big", floats({3000}));
  m.node("MatMul", {"x", "w"}, {"a"}).node("Add", {"a", "big"}, {"b"}).node("Sub", {"b", "big"}, {"y"});
  FixOptions options;
  options.precision = Precision::bf16;
  options.most_tries = 0;
  auto result = fix_model(document(m.model), options, make_reference_backend());
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().reason, Reason::too_inaccurate);
  EXPECT_NE(result.error().message.find("Sub_2"), std::string::npos) << result.error().message;
  options.most_tries = 14;
  result = fix_model(document(m.model), options, make_reference_backend());
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_FALSE(result->report.wide.empty());
}

TEST(FixPrecision, IntegersByHand) {
  TestModel m(13);
  m.input("x", {1, 2, 1, 2})
      .output("y")
      .constant("w", HostTensor::of(DType::f32, {2, 2, 1, 1}, std::vector<float>{127, -1, 0.5f, 0.25f}));
  m.constant("b", floats({10, -2})).constant("v", HostTensor::of(DType::f32, {1, 2, 1, 1}, std::vector<float>{1, 1}));
  m.node("Conv", {"x", "w", "b"}, {"c"}).node("Relu", {"c"}, {"r"}).node("Conv", {"r", "v"}, {"y"});
  FixOptions options;
  options.precision = Precision::int8;
  options.multiple = 1;
  options.samples = {{HostTensor::of(DType::f32, {1, 2, 1, 2}, std::vector<float>{-1, 1.55f, 0, 0.5f})}};
  auto result = fix_model(document(m.model), options, make_reference_backend());
  ASSERT_TRUE(result.ok()) << result.error().message;
  const Document& doc = result->model;
  EXPECT_NEAR(doc.constant("x_scale")->data<float>()[0], 0.01, 1e-6);
  EXPECT_EQ(doc.constant("x_zero")->data<uint8_t>()[0], 100);
  EXPECT_EQ(doc.constant("w_scale")->data<float>()[0], 1);
  EXPECT_EQ(doc.constant("w_quantized")->data<int8_t>()[0], 127);
  EXPECT_EQ(doc.constant("w_quantized")->data<int8_t>()[1], -1);
  EXPECT_EQ(doc.constant("w_quantized")->data<int8_t>()[2], 127);
  EXPECT_EQ(doc.constant("w_quantized")->data<int8_t>()[3], 64);
  EXPECT_EQ(doc.constant("b_quantized")->data<int32_t>()[0], 1000);
  EXPECT_EQ(doc.constant("r_zero")->data<uint8_t>()[0], 0);
  EXPECT_TRUE(doc.constant("c_scale") == std::nullopt);  // the bound of Relu is the integers' own
  // The last product's result is in 8 bits too, under a name of its own: the model's output has the caller's.
  EXPECT_TRUE(result->report.wide.empty());
  EXPECT_EQ(result->report.integer_share, 1);
  const auto& last = doc.graph().node(doc.producer("y"));
  EXPECT_EQ(last.op_type(), "DequantizeLinear");
  EXPECT_EQ(doc.graph().node(doc.producer("y_wide")).op_type(), "Conv");
  // Unless they are scores of classes, of which the first two must not become one.
  TestModel classes(13);
  classes.input("x", {1, 4}).output("y").constant("w", normal({4, 5}, 3)).node("MatMul", {"x", "w"}, {"y"});
  options.samples = {};
  result = fix_model(document(classes.model), options, make_reference_backend());
  ASSERT_TRUE(result.ok()) << result.error().message;
  ASSERT_EQ(result->report.wide.size(), 1u);
  EXPECT_NE(result->report.wide[0].why.find("scores of classes"), std::string::npos);
}

// Inputs of a mean far from zero: what rounding does to weights adds up to a constant, which the bias takes back.
TEST(FixPrecision, BiasesTakeBackTheMeanOfWhatRoundingMoves) {
  TestModel m(13);
  std::vector<float> taps(27, 0.0049f);
  taps[13] = 1.27f;  // steps of 0.01, in which all others are 0
  m.input("x", {1, 3, 8, 8}).output("y").constant("w", HostTensor::of(DType::f32, {1, 3, 3, 3}, taps));
  m.node("Conv", {"x", "w"}, {"y"}).with("pads", std::vector<int64_t>{1, 1, 0, 0});
  FixOptions options;
  options.precision = Precision::int8;
  options.multiple = 1;
  options.samples = {{HostTensor::of(DType::f32, {1, 3, 8, 8}, std::vector<float>(192, 1))}};
  auto result = fix_model(document(m.model), options, make_reference_backend());
  ASSERT_TRUE(result.ok()) << result.error().message;
  const Document& doc = result->model;
  ASSERT_TRUE(doc.constant("w_bias_quantized").has_value());
  const double bias = doc.constant("w_bias_quantized")->data<int32_t>()[0] *
                      static_cast<double>(doc.constant("w_bias_scale")->data<float>()[0]);
  // The first row and column of taps meet padding in one of seven places.
  const double along = 6.0 / 7 + 1 + 1;
  EXPECT_NEAR(bias, 0.0049 * (3 * along * along - 1), 1e-3);
}

// The search keeps what it must, and gives back what was kept with it.
TEST(FixPrecision, NoMoreLayersStayWideThanMust) {
  std::vector<LayerGroup> groups;
  for (int i = 0; i < 20; ++i)
    groups.push_back({"layer" + std::to_string(i), {"t" + std::to_string(i)}, 100, i == 7 ? 0.3 : 0.01});
  for (const std::vector<int>& needed : {std::vector<int>{7}, {7, 3}, {7, 3, 19, 0}, {}}) {
    int tries = 0;
    const auto attempt = [&](const Layers& wide) -> Result<Proof> {
      ++tries;
      Proof proof;
      proof.outputs.push_back({"y"});
      for (const int n : needed) proof.outputs[0].cosine -= wide.contains("t" + std::to_string(n)) ? 0 : 0.1;
      return proof;
    };
    auto choice = choose_wide(groups, {attempt, [](const Proof& p) { return p.cosine() > 0.99; }, 14});
    ASSERT_TRUE(choice.ok());
    EXPECT_TRUE(choice->good);
    const Layers kept = layers_of(choice->groups);
    for (const int n : needed) EXPECT_TRUE(kept.contains("t" + std::to_string(n)));
    EXPECT_LE(kept.size(), needed.size() + 2) << tries;
    EXPECT_LE(tries, 28);
  }
}

// Far below zero x * Sigmoid(x) is zero: what lies there needs no steps.
TEST(FixPrecision, RangesAreCutWhereWhatReadsThemIsFlat) {
  TestModel m(13);
  m.input("x", {1, 8}).output("y").output("z");
  m.node("Sigmoid", {"x"}, {"s"}).node("Mul", {"x", "s"}, {"y"}).node("Tanh", {"y"}, {"z"});
  const Document doc = document(m.model);
  const Function silu = function_behind(doc, "x");
  ASSERT_TRUE(silu);
  EXPECT_NEAR(silu(2), 2 / (1 + std::exp(-2.0)), 1e-9);
  EXPECT_FALSE(function_behind(doc, "y"));  // the caller reads it too
  Range range;
  range.low = -50, range.high = 20, range.bins.assign(kBins, 1);
  EXPECT_GT(cut_range(range, Cut::mse, 0, silu).low, -12);
  EXPECT_GT(cut_range(range, Cut::mse, 0, silu).high, 19.5f);
  EXPECT_EQ(cut_range(range, Cut::mse, 0).low, -50);
}

// Where real numbers are read, channels of small values have small steps beside those of large ones.
TEST(FixPrecision, ChannelsHaveStepsOfTheirOwn) {
  Range range;
  range.low = -50, range.high = 88;
  range.lows = {-50, -0.5f, 0, 0}, range.highs = {88, 0.5f, 1, 0};
  const ChannelSteps whole = steps_of_channels(range, Cut::min_max, {});
  EXPECT_NEAR(whole.steps[1] / whole.steps[0], 1.0 / 100, 0.004);
  for (size_t c = 0; c < 3; ++c) {
    EXPECT_LE(-range.lows[c], whole.zero * whole.steps[c] * 1.0001f);
    EXPECT_LE(range.highs[c], (255 - whole.zero) * whole.steps[c] * 1.0001f);
    EXPECT_LE(whole.steps[c], 2 * (range.highs[c] - range.lows[c]) / 255) << "half of the values at least serve it";
  }
  EXPECT_GT(whole.parts()[3], 0);
  EXPECT_EQ(whole.parts()[0], 1);
  // x * Sigmoid(x) is flat where the first channel ends.
  const auto silu = [](double x) { return x / (1 + std::exp(-x)); };
  EXPECT_LT(steps_of_channels(range, Cut::mse, silu).zero, whole.zero);

  TestModel m(13);
  m.input("x", {1, 2, 8, 8}).output("y");
  m.constant("w", HostTensor::of(DType::f32, {2, 2, 1, 1}, std::vector<float>{100, 80, 0.5f, 0.7f}));
  m.constant("v", normal({4, 2, 1, 1}, 5));
  m.node("Conv", {"x", "w"}, {"c"})
      .node("Sigmoid", {"c"}, {"s"})
      .node("Mul", {"c", "s"}, {"a"})
      .node("Conv", {"a", "v"}, {"y"});
  FixOptions options;
  options.precision = Precision::int8;
  options.multiple = 1;
  const Document original = document(m.model);
  auto result = fix_model(original, options, make_reference_backend());
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->report.integer_share, 1);
  const Document& doc = result->model;
  ASSERT_TRUE(doc.constant("c_parts").has_value());
  EXPECT_EQ(doc.constant("c_parts")->shape, (Dims{2, 1, 1}));
  EXPECT_LT(doc.constant("c_parts")->data<float>()[1], 0.02f);
  // Both channels come out within a step or two of their own.
  const std::string behind = doc.graph().node(doc.uses("c_parts")[0].node).output(0);
  const auto samples = random_inputs(*original.to_graph(), *bindings_of(*original.to_graph(), {}), 1);
  auto before = Runner::open(original, make_reference_backend(), {"c"});
  auto after = Runner::open(doc, make_reference_backend(), {behind});
  ASSERT_TRUE(before.ok() && after.ok());
  const auto want = *before->run(samples), have = *after->run(samples);
  for (int64_t i = 64; i < 128; ++i) EXPECT_NEAR(have[1].data<float>()[i], want[1].data<float>()[i], 0.1f);
  // A cut that is asked for holds for channels too.
  const float uncut = doc.constant("c_scale")->data<float>()[0];
  options.quantize = {Cut::percentile, 75};
  options.proof = ProofBy::none;
  result = fix_model(original, options, make_reference_backend());
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_LT(result->model.constant("c_scale")->data<float>()[0], 0.7f * uncut);
}

TEST(FixPrecision, RangesAreCut) {
  Range range;
  range.low = -1, range.high = 9, range.bins.assign(kBins, 0);
  for (int i = 0; i < kBins; ++i) {  // a bell around zero, and one outlier
    const float x = (static_cast<float>(i) + 0.5f) / kBins * 10 - 1;
    range.bins[static_cast<size_t>(i)] = std::round(1e5f * std::exp(-x * x * 6));
  }
  range.bins[kBins - 1] = 1;
  EXPECT_EQ(cut_range(range, Cut::min_max, 0).high, 9);
  const Range percentile = cut_range(range, Cut::percentile, 99.9);
  EXPECT_NEAR(percentile.high, 0.95, 0.05);
  EXPECT_EQ(percentile.low, -percentile.high);
  EXPECT_LT(cut_range(range, Cut::entropy, 0).high, 3);
}

// Every network of the zoo that is small, through rewrites and each precision; answers of the rewrites to the bit.
TEST(FixNetworks, OfTheZoo) {
  for (const std::string_view name : zoo_names()) {
    if (!name.starts_with("tiny")) continue;
    for (const uint64_t seed : {1, 2, 3})
      for (const Precision precision : {Precision::fp32, Precision::fp16, Precision::bf16, Precision::int8}) {
        SCOPED_TRACE(std::string(name) + " seed " + std::to_string(seed) + " " + std::string(name_of(precision)));
        auto graph = zoo_network(name, {seed, true, 1});
        ASSERT_TRUE(graph.ok());
        auto bytes = onnx_bytes(*graph);
        ASSERT_TRUE(bytes.ok()) << bytes.error().message;
        ::onnx::ModelProto model;
        ASSERT_TRUE(model.ParseFromString(*bytes));
        FixOptions options;
        options.precision = precision;
        options.max_extra = 4;
        options.least_cosine = 0.9;
        auto result = fix_model(document(model), options, make_reference_backend());
        ASSERT_TRUE(result.ok()) << result.error().message;
        ASSERT_TRUE(result->report.exact.has_value());
        EXPECT_TRUE(result->report.exact->same_bits());
      }
  }
}

}  // namespace
}  // namespace sparkle::fix
