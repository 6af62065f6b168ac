// The model that is being mended: the ONNX message itself, so that names, metadata and attributes that nobody here knows stay,
// and beside it what Sparkle's reader says of the same bytes: types and shapes of all tensors for one set of input shapes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "onnx/model_file.h"

namespace sparkle::fix {

struct TensorInfo {
  DType dtype = DType::f32;
  Dims shape;
};

// One input of one node.
struct Use {
  int node = 0, input = 0;
};

class Document {
 public:
  // Errors: file_unreadable, bad_format, bad_model, operator_not_served with what the reader refuses.
  // Nodes without names are called as the reader calls them, so that a layer keeps its name where others come before it.
  static Result<Document> read(const std::string& path);
  static Result<Document> take(::onnx::ModelProto model, const std::string& name);
  // Nodes and what is small: large weights are known by name alone, and what lies in files beside the model is not read. To
  // plan with, not to write.
  static Result<Document> outline(const std::string& path);

  ::onnx::ModelProto& model() { return model_; }
  const ::onnx::ModelProto& model() const { return model_; }
  ::onnx::GraphProto& graph() { return *model_.mutable_graph(); }
  const ::onnx::GraphProto& graph() const { return model_.graph(); }
  const std::string& name() const { return name_; }
  int64_t opset() const;
  void set_opset(int64_t opset);

  // -- who makes and reads a tensor; index() again after nodes or initializers were added, dropped or renamed
  void index();
  int producer(const std::string& tensor) const;  // -1: an input of the model or a constant
  const std::vector<Use>& uses(const std::string& tensor) const;
  bool is_output(const std::string& tensor) const;
  bool is_input(const std::string& tensor) const;
  ::onnx::TensorProto* initializer(const std::string& tensor);
  bool is_constant(const std::string& tensor) const { return initializers_.contains(tensor); }
  // The value of an initializer; nothing where it is none.
  std::optional<HostTensor> constant(const std::string& tensor) const;
  void set_constant(const std::string& tensor, const HostTensor& value);
  std::string add_constant(const std::string& wished_name, const HostTensor& value);

  // A name that no tensor and no node has yet: "NAME", else "NAME_1" ...; it counts as taken from now on.
  std::string fresh(const std::string& wished_name);

  // Nodes in an order that can run, initializers without their doubles among the inputs, Constant nodes as initializers.
  Status normalize();
  // Drops nodes and initializers that no output needs.
  void drop_dead();

  // The reader's graph, not simplified.
  Result<Graph> to_graph() const;
  std::string bytes() const { return model_.SerializeAsString(); }

 private:
  ::onnx::ModelProto model_;
  std::string name_;
  std::map<std::string, int> producers_, initializers_;
  std::map<std::string, std::vector<Use>> uses_;
  std::map<std::string, bool> outputs_, inputs_, taken_;
};

// Attributes of a node, with what holds where it has none.
const ::onnx::AttributeProto* attribute(const ::onnx::NodeProto& node, const std::string& name);
int64_t int_attribute(const ::onnx::NodeProto& node, const std::string& name, int64_t otherwise);
double float_attribute(const ::onnx::NodeProto& node, const std::string& name, double otherwise);
std::string text_attribute(const ::onnx::NodeProto& node, const std::string& name, const std::string& otherwise);
std::optional<std::vector<int64_t>> ints_attribute(const ::onnx::NodeProto& node, const std::string& name);
void set_attribute(::onnx::NodeProto& node, const std::string& name, int64_t value);
void set_attribute(::onnx::NodeProto& node, const std::string& name, const std::vector<int64_t>& values);
void drop_attribute(::onnx::NodeProto& node, const std::string& name);
// The input's name; empty where it is not given.
std::string input_of(const ::onnx::NodeProto& node, int input);
std::string label_of(const ::onnx::NodeProto& node, int index);
bool is_standard(const ::onnx::NodeProto& node);

// Types and shapes of all tensors of the model for these inputs.
Result<std::map<std::string, TensorInfo>> infer_tensors(const Document& doc, const std::vector<InputBinding>& inputs);

// The same of a graph as it was read.
Result<std::map<std::string, TensorInfo>> infer_tensors(const Graph& graph, const std::vector<InputBinding>& inputs);

// The values that folding knows by the names of their tensors, for these inputs.
Result<std::map<std::string, HostTensor>> constants_of(const Document& doc, const std::vector<InputBinding>& inputs);
Result<std::map<std::string, HostTensor>> constants_of(const Graph& graph, const std::vector<InputBinding>& inputs);

// One shape per input: as declared, open batch sizes 1, other open sizes as `given` says by input name. Errors: bad_usage.
Result<std::vector<InputBinding>> bindings_of(const Graph& graph, const std::map<std::string, Dims>& given);

}  // namespace sparkle::fix
