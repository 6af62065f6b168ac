// Small ONNX files for tests: one node or a few, built as protobuf messages.
#pragma once

#include <onnx.pb.h>

#include <string>
#include <vector>

#include "onnx/reader.h"
#include "onnx/tensor_proto.h"

namespace sparkle::testing {

struct TestModel {
  ::onnx::ModelProto model;

  explicit TestModel(int64_t opset) {
    model.set_ir_version(8);
    model.add_opset_import()->set_version(opset);
    model.mutable_graph()->set_name("test");
  }
  ::onnx::GraphProto& graph() { return *model.mutable_graph(); }
  TestModel& input(const std::string& name, const std::vector<int64_t>& shape, DType type = DType::f32) {
    return declare(*graph().add_input(), name, shape, type);
  }
  TestModel& output(const std::string& name, const std::vector<int64_t>& shape = {}, DType type = DType::f32) {
    return declare(*graph().add_output(), name, shape, type);
  }
  TestModel& constant(const std::string& name, const HostTensor& value) {
    put_tensor(value, name, *graph().add_initializer());
    return *this;
  }
  TestModel& node(const std::string& type, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs) {
    auto& node = *graph().add_node();
    node.set_op_type(type);
    for (const auto& name : inputs) node.add_input(name);
    for (const auto& name : outputs) node.add_output(name);
    return *this;
  }
  // Attributes of the last node.
  ::onnx::AttributeProto& attribute(const std::string& name, ::onnx::AttributeProto::AttributeType type) {
    auto& attribute = *graph().mutable_node(graph().node_size() - 1)->add_attribute();
    attribute.set_name(name);
    attribute.set_type(type);
    return attribute;
  }
  TestModel& with(const std::string& name, int64_t value) {
    attribute(name, ::onnx::AttributeProto::INT).set_i(value);
    return *this;
  }
  TestModel& with(const std::string& name, float value) {
    attribute(name, ::onnx::AttributeProto::FLOAT).set_f(value);
    return *this;
  }
  TestModel& with(const std::string& name, const char* value) {
    attribute(name, ::onnx::AttributeProto::STRING).set_s(value);
    return *this;
  }
  TestModel& with(const std::string& name, const std::vector<int64_t>& values) {
    auto& list = attribute(name, ::onnx::AttributeProto::INTS);
    for (int64_t v : values) list.add_ints(v);
    return *this;
  }
  TestModel& with(const std::string& name, const std::vector<float>& values) {
    auto& list = attribute(name, ::onnx::AttributeProto::FLOATS);
    for (float v : values) list.add_floats(v);
    return *this;
  }
  std::string bytes() const { return model.SerializeAsString(); }
  Result<Graph> read() const {
    const std::string text = bytes();
    return read_onnx_bytes(std::as_bytes(std::span(text)), "", "test.onnx");
  }

 private:
  TestModel& declare(::onnx::ValueInfoProto& info, const std::string& name, const std::vector<int64_t>& shape, DType type) {
    info.set_name(name);
    auto& tensor = *info.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(onnx_type_of(type));
    if (!shape.empty())
      for (int64_t size : shape) tensor.mutable_shape()->add_dim()->set_dim_value(size);
    return *this;
  }
};

}  // namespace sparkle::testing
