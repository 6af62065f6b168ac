// Operators that become others once shapes are known: forms that are refused by name when a file is read.
#include <gtest/gtest.h>

#include "onnx/test_model.h"

namespace sparkle {
namespace {
using testing::TestModel;

TestModel recurrent(const char* type) {
  TestModel model(14);
  model.input("x", {3, 2, 3});
  model.constant("w", HostTensor::zeros(DType::f32, {1, 16, 3}));
  model.constant("r", HostTensor::zeros(DType::f32, {1, 16, 4}));
  model.output("y");
  model.node(type, {"x", "w", "r"}, {"y"});
  return model;
}

std::string why(const TestModel& model) {
  const auto graph = model.read();
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
  for (const Op& op : graph->ops)
    if (const auto* unknown = std::get_if<UnknownOp>(&op.params)) return unknown->why;
  return "";
}

TEST(ComposedOps, FormsThatAreRefused) {
  EXPECT_EQ(why(recurrent("LSTM")), "");
  EXPECT_EQ(why(recurrent("LSTM").with("direction", "sideways")), "its attribute 'direction' is 'sideways'");
  TestModel model = recurrent("LSTM");
  auto& list = model.attribute("activations", ::onnx::AttributeProto::STRINGS);
  for (const char* name : {"Sigmoid", "Swish", "Tanh"}) list.add_strings(name);
  EXPECT_EQ(why(model), "its activation 'swish' is none of ONNX's");
}

TEST(ComposedOps, TheNumberOfActivationsFitsTheDirections) {
  TestModel model = recurrent("LSTM").with("direction", "bidirectional");
  auto& list = model.attribute("activations", ::onnx::AttributeProto::STRINGS);
  for (const char* name : {"Sigmoid", "Tanh", "Tanh"}) list.add_strings(name);
  const auto graph = model.read();
  ASSERT_FALSE(graph.ok());
  EXPECT_NE(graph.error().message.find("names 3 activations where 6 belong"), std::string::npos) << graph.error().message;
}

}  // namespace
}  // namespace sparkle
