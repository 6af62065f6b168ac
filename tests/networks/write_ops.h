// One Op as nodes of an ONNX file: what the writer gives to the functions per operator.
#pragma once

#include <onnx.pb.h>

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "graph/graph.h"

namespace sparkle {

// The file under construction: names of tensors, nodes and further constants.
class ModelWriter {
 public:
  ModelWriter(const Graph& graph, ::onnx::GraphProto& file);

  const Graph& graph() const { return graph_; }
  const std::string& name(TensorId id) const;                                         // "" for kAbsent
  bool only_f32() const { return only_f32_; }                                         // no other floating-point type occurs
  std::string fresh(const std::string& wish);                                         // a name that nothing has
  std::string integers(const std::string& wish, const std::vector<int64_t>& values);  // a constant [n] of type i64
  std::string constant(const std::string& wish, const HostTensor& value);
  ::onnx::NodeProto& node(const std::string& node_name, std::string_view type, const std::vector<std::string>& inputs,
                          const std::vector<std::string>& outputs);

 private:
  const Graph& graph_;
  ::onnx::GraphProto& file_;
  std::vector<std::string> names_;
  std::unordered_set<std::string> taken_, node_names_;
  bool only_f32_ = true;
};

void set(::onnx::NodeProto& node, std::string_view name, int64_t value);
void set(::onnx::NodeProto& node, std::string_view name, double value);
void set(::onnx::NodeProto& node, std::string_view name, std::string_view value);
void set(::onnx::NodeProto& node, std::string_view name, const std::vector<int64_t>& values);
std::vector<int64_t> values_of(const Dims& dims);

Status write_op(ModelWriter& model, const Op& op);
// The part of write_op for element-wise operators.
Status write_pointwise(ModelWriter& model, const Op& op, const PointwiseNode& node);

}  // namespace sparkle
