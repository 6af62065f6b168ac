// Node: one node of an ONNX file as the operator functions see it: attributes with defaults, inputs and outputs as tensors
// of the Graph under construction, and what is known about them. The first contradiction is kept in problem().
#pragma once

#include <onnx.pb.h>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "graph/graph.h"
#include "graph/refusals.h"
#include "onnx/tensor_proto.h"

namespace sparkle {

// A graph that a node holds, closed: its last inputs are what it reads of the graph around it, which are `read` there.
struct Body {
  std::shared_ptr<const Graph> graph;
  std::vector<TensorId> read;
};

// The Graph under construction and the names of the file.
struct Import {
  std::function<Result<Body>(::onnx::GraphProto&, const std::string& node)> read_body;
  Graph graph;
  std::string where;                 // the file as errors call it
  std::string folder;                // of external data
  std::optional<ExternalMaps> maps;  // where it is not copied
  ExternalMaps* external() { return maps ? &*maps : nullptr; }
  std::unordered_map<std::string, TensorId> ids;
  std::unordered_map<std::string, const ::onnx::ValueInfoProto*> declared;  // inputs, outputs and value_info
  std::unordered_set<std::string> used;                                     // names that a node reads or that are outputs
};

class Node {
 public:
  Node(Import& import, ::onnx::NodeProto& proto, std::string name, int64_t opset);

  const int64_t opset;
  // Absent inputs are kAbsent; operator functions may rewrite both lists before they return.
  std::vector<TensorId> inputs, outputs;

  // -- attributes: the value, or `fallback` where it is not given
  bool has(std::string_view name);
  int64_t integer(std::string_view name, int64_t fallback);
  bool flag(std::string_view name, bool fallback) { return integer(name, fallback) != 0; }
  double real(std::string_view name, double fallback);
  std::string text(std::string_view name, std::string_view fallback);
  std::vector<int64_t> integers(std::string_view name);
  std::vector<double> reals(std::string_view name);
  std::vector<std::string> texts(std::string_view name);
  Dims dims(std::string_view name);  // up to kMaxRank integers
  ::onnx::TensorProto* tensor(std::string_view name);
  // The graph in an attribute becomes a body of the operator, and what it reads inputs of it. False: it is not there or wrong,
  // and problem() says so.
  bool body(std::string_view name, HostOp& op);
  void ignore(std::string_view name) { has(name); }  // given, but without influence on inference
  // The first attribute that no call above asked for, or empty.
  std::string unread_attribute() const;

  // -- tensors
  bool given(int input) const { return input < static_cast<int>(inputs.size()) && inputs[static_cast<size_t>(input)] >= 0; }
  TensorId input(int i) const { return given(i) ? inputs[static_cast<size_t>(i)] : kAbsent; }
  const HostTensor* constant(int input) const;  // nullptr where it is no constant
  int rank(int input) const;                    // -1 where it is unknown
  std::optional<DType> element_type(int input) const;
  bool output_used(int output) const;

  // -- results: most functions return parameters for one operator on `inputs` and `outputs`
  // An operator before that one; its result is a new tensor.
  TensorId step(OpParams params, std::vector<TensorId> step_inputs);
  // This value as a tensor without axes, of the type of another.
  TensorId number_like(double value, TensorId like);
  // An operator on tensors of its own; `suffix` tells its name from the node's.
  void emit(OpParams params, std::vector<TensorId> from, std::vector<TensorId> to, const std::string& suffix = "");
  // The first output is this constant: no operator remains.
  void define(HostTensor value);
  bool defined() const { return defined_; }

  const std::string& name() const { return name_; }
  const std::string& type() const { return type_; }
  bool standard() const { return standard_; }  // of ONNX's own domain
  // Keeps the first contradiction: "has the scale 0".
  void fail(Reason reason, const std::string& what);
  void fail(const Error& error);
  const std::optional<Refusal>& problem() const { return problem_; }
  Import& import() { return import_; }

 private:
  ::onnx::AttributeProto* find(std::string_view name);
  ::onnx::AttributeProto* find(std::string_view name, ::onnx::AttributeProto::AttributeType type, std::string_view kind);

  Import& import_;
  ::onnx::NodeProto& proto_;
  std::string name_, type_;
  bool standard_ = true;
  std::vector<bool> read_;  // per attribute
  std::optional<Refusal> problem_;
  bool defined_ = false;
  int steps_ = 0;
};

// How one operator is read: the function, and the inputs that must be given in every opset. What the specification allows in
// which opset says operators.h.
struct OperatorRow {
  std::string_view type;
  OpParams (*read)(Node&);
  int min_inputs;
};

// Operators of com.microsoft have their domain in the name.
// The rows by theme, one file each (ops_*.cc); operator_themes and find_operator look through all of them.
std::span<const OperatorRow> window_operators();
std::span<const OperatorRow> pointwise_operators();
std::span<const OperatorRow> normalize_operators();
std::span<const OperatorRow> attention_operators();
std::span<const OperatorRow> reduce_operators();
std::span<const OperatorRow> quantize_operators();
std::span<const OperatorRow> shape_operators();
std::span<const OperatorRow> index_operators();
std::span<const OperatorRow> resize_operators();
std::span<const OperatorRow> sample_operators();
std::span<const OperatorRow> constant_operators();
std::span<const OperatorRow> control_operators();
std::span<const OperatorRow> sequence_operators();
std::span<const OperatorRow> recurrent_operators();
std::span<const OperatorRow> composed_operators();
std::span<const OperatorRow> signal_operators();
std::vector<std::span<const OperatorRow>> operator_themes();
const OperatorRow* find_operator(std::string_view domain, std::string_view type);

}  // namespace sparkle
