// Functions of a model: in the place of their calls, with the attributes and opset of their own, and bounded.
#include "onnx/functions.h"

#include <gtest/gtest.h>

#include "onnx/test_model.h"

namespace sparkle {
namespace {
using testing::TestModel;

::onnx::FunctionProto& function(TestModel& m, const std::string& name, int64_t opset) {
  auto& f = *m.model.add_functions();
  f.set_name(name), f.set_domain("my");
  f.add_input("a"), f.add_output("b");
  f.add_opset_import()->set_version(opset);
  return f;
}

::onnx::NodeProto& call(google::protobuf::RepeatedPtrField<::onnx::NodeProto>& nodes, const std::string& type,
                        const std::string& from, const std::string& to, const std::string& domain = "my") {
  auto& node = *nodes.Add();
  node.set_op_type(type), node.set_domain(domain);
  node.add_input(from), node.add_output(to);
  return node;
}

TestModel model_of() {
  TestModel m(16);
  auto& own = *m.model.add_opset_import();
  own.set_domain("my"), own.set_version(1);
  m.input("x", {1, 3}).output("y");
  return m;
}

TEST(Functions, TakeAttributesOfTheCallAndHaveAnOpsetOfTheirOwn) {
  TestModel m = model_of();
  auto& f = function(m, "Leak", 12);
  f.add_attribute("slope");
  auto& leak = *call(*f.mutable_node(), "LeakyRelu", "a", "t", "").add_attribute();
  leak.set_name("alpha"), leak.set_ref_attr_name("slope"), leak.set_type(::onnx::AttributeProto::FLOAT);
  auto& axes = *call(*f.mutable_node(), "Squeeze", "t", "b", "").add_attribute();  // an attribute until opset 13
  axes.set_name("axes"), axes.set_type(::onnx::AttributeProto::INTS), axes.add_ints(0);
  auto& slope = *call(*m.graph().mutable_node(), "Leak", "x", "y").add_attribute();
  slope.set_name("slope"), slope.set_type(::onnx::AttributeProto::FLOAT), slope.set_f(0.25f);
  const auto graph = m.read();
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  ASSERT_EQ(graph->ops.size(), 2u);
  const auto* node = std::get_if<PointwiseNode>(&graph->ops[0].params);
  ASSERT_TRUE(node);
  EXPECT_EQ(node->a, 0.25);
}

TEST(Functions, RefuseRecursionAndEndlessGrowth) {
  TestModel m = model_of();
  call(*function(m, "R", 16).mutable_node(), "R", "a", "b");
  call(*m.graph().mutable_node(), "R", "x", "y");
  const auto recursive = m.read();
  ASSERT_FALSE(recursive.ok());
  EXPECT_NE(recursive.error().message.find("calls itself"), std::string::npos) << recursive.error().message;
  TestModel grows = model_of();
  call(*function(grows, "F0", 16).mutable_node(), "Neg", "a", "b", "");
  for (int i = 1; i < 40; ++i) {
    auto& f = function(grows, "F" + std::to_string(i), 16);
    call(*f.mutable_node(), "F" + std::to_string(i - 1), "a", "c");
    call(*f.mutable_node(), "F" + std::to_string(i - 1), "c", "b");
  }
  call(*grows.graph().mutable_node(), "F39", "x", "y");
  const auto grown = grows.read();
  ASSERT_FALSE(grown.ok());
  EXPECT_EQ(grown.error().reason, Reason::size_overflow) << grown.error().message;
}

}  // namespace
}  // namespace sparkle
