// Rules one by one, precision by small models of which one knows what must come, and networks of the zoo through all of it.
#include "fix/fix.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "backends/reference/reference_backend.h"
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
  // The last product's result is the model's, in f32.
  ASSERT_EQ(result->report.wide.size(), 1u);
  EXPECT_NEAR(result->report.integer_share, 2.0 / 3, 1e-6);
}

TEST(FixPrecision, RangesAreCut) {
  Range range{-1, 9, std::vector<float>(kBins, 0)};
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
