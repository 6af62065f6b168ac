#include "fix/document/document.h"

#include <algorithm>
#include <functional>
#include <set>

#include "onnx/order.h"
#include "onnx/reader.h"
#include "onnx/tensor_proto.h"
#include "run/opening/open_model.h"

namespace sparkle::fix {
using ::onnx::GraphProto;
using ::onnx::ModelProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;
namespace {

void name_nodes(GraphProto& graph) {
  std::set<std::string> taken;
  for (const NodeProto& node : graph.node()) taken.insert(node.name());
  for (int n = 0; n < graph.node_size(); ++n)
    if (const std::string label = label_of(graph.node(n), n); !taken.contains(label)) graph.mutable_node(n)->set_name(label);
}

}  // namespace

Result<Document> Document::read(const std::string& path) {
  SPARKLE_CHECK(check_onnx_file(path));
  SPARKLE_TRY(model, read_model_proto(path));
  return take(std::move(model), path);
}

Result<Document> Document::outline(const std::string& path) {
  constexpr int64_t kSmall = 1024;  // elements: shapes, bounds, scales
  SPARKLE_TRY(model, read_model_outline(path));
  Document doc;
  doc.model_ = std::move(model), doc.name_ = path;
  for (TensorProto& proto : *doc.graph().mutable_initializer()) {
    int64_t elements = 1;
    for (const int64_t size : proto.dims())
      if (elements <= kSmall) elements *= std::min(size, kSmall + 1);
    if (elements <= kSmall) continue;
    proto.clear_raw_data();
    proto.clear_float_data();
    proto.clear_int32_data();
  }
  name_nodes(doc.graph());
  SPARKLE_CHECK(doc.normalize());
  return doc;
}

Result<Document> Document::take(ModelProto model, const std::string& name) {
  Document doc;
  doc.model_ = std::move(model);
  doc.name_ = name;
  SPARKLE_TRY(graph, doc.to_graph());  // who refuses a model says why
  name_nodes(doc.graph());
  SPARKLE_CHECK(doc.normalize());
  return doc;
}

int64_t Document::opset() const {
  for (const auto& entry : model_.opset_import())
    if (entry.domain().empty() || entry.domain() == "ai.onnx") return entry.version();
  return 1;
}

void Document::set_opset(int64_t opset) {
  for (auto& entry : *model_.mutable_opset_import())
    if (entry.domain().empty() || entry.domain() == "ai.onnx") entry.set_version(opset);
}

void Document::index() {
  producers_.clear(), initializers_.clear(), uses_.clear(), outputs_.clear(), inputs_.clear();
  const GraphProto& g = graph();
  for (int i = 0; i < g.initializer_size(); ++i)
    initializers_[g.initializer(i).name()] = i, taken_[g.initializer(i).name()] = true;
  for (int n = 0; n < g.node_size(); ++n) {
    taken_[g.node(n).name()] = true;
    for (int i = 0; i < g.node(n).input_size(); ++i)
      if (!g.node(n).input(i).empty()) uses_[g.node(n).input(i)].push_back({n, i});
    for (const std::string& name : g.node(n).output())
      if (!name.empty()) producers_[name] = n, taken_[name] = true;
  }
  for (const auto& info : g.output()) outputs_[info.name()] = true;
  for (const auto& info : g.input()) inputs_[info.name()] = true, taken_[info.name()] = true;
}

int Document::producer(const std::string& tensor) const {
  const auto at = producers_.find(tensor);
  return at == producers_.end() ? -1 : at->second;
}

const std::vector<Use>& Document::uses(const std::string& tensor) const {
  static const std::vector<Use> kNone;
  const auto at = uses_.find(tensor);
  return at == uses_.end() ? kNone : at->second;
}

bool Document::is_output(const std::string& tensor) const { return outputs_.contains(tensor); }
bool Document::is_input(const std::string& tensor) const { return inputs_.contains(tensor); }

TensorProto* Document::initializer(const std::string& tensor) {
  const auto at = initializers_.find(tensor);
  return at == initializers_.end() ? nullptr : graph().mutable_initializer(at->second);
}

std::optional<HostTensor> Document::constant(const std::string& tensor) const {
  const auto at = initializers_.find(tensor);
  if (at == initializers_.end()) return std::nullopt;
  auto value = tensor_value(graph().initializer(at->second), "tensor '" + tensor + "'");
  if (!value.ok()) return std::nullopt;
  return std::move(*value);
}

void Document::set_constant(const std::string& tensor, const HostTensor& value) {
  TensorProto* proto = initializer(tensor);
  const std::string text = proto->doc_string();
  proto->Clear();
  put_tensor(value, tensor, *proto);
  if (!text.empty()) proto->set_doc_string(text);
}

std::string Document::add_constant(const std::string& wished_name, const HostTensor& value) {
  const std::string name = fresh(wished_name);
  initializers_[name] = graph().initializer_size();
  put_tensor(value, name, *graph().add_initializer());
  return name;
}

std::string Document::fresh(const std::string& wished_name) {
  std::string name = wished_name;
  for (int i = 1; taken_.contains(name); ++i) name = wished_name + "_" + std::to_string(i);
  taken_[name] = true;
  return name;
}

Status Document::normalize() {
  GraphProto& g = graph();
  // Constant nodes hold what initializers hold; other forms than a tensor are left to folding.
  google::protobuf::RepeatedPtrField<NodeProto> nodes;
  for (NodeProto& node : *g.mutable_node()) {
    const auto* value = attribute(node, "value");
    if (node.op_type() == "Constant" && is_standard(node) && value && value->has_t()) {
      TensorProto proto = value->t();
      proto.set_name(node.output(0));
      *g.add_initializer() = std::move(proto);
    } else {
      nodes.Add(std::move(node));
    }
  }
  g.mutable_node()->Swap(&nodes);
  index();
  std::vector<std::vector<int>> needs(static_cast<size_t>(g.node_size()));
  for (int n = 0; n < g.node_size(); ++n)
    for (const std::string& name : g.node(n).input())
      if (const int p = producer(name); p >= 0) needs[static_cast<size_t>(n)].push_back(p);
  google::protobuf::RepeatedPtrField<NodeProto> sorted;
  for (int n : topological_order(needs)) sorted.Add(NodeProto(g.node(n)));
  g.mutable_node()->Swap(&sorted);
  // Initializers that older files also list as inputs are defaults that nobody gives.
  google::protobuf::RepeatedPtrField<::onnx::ValueInfoProto> inputs;
  for (auto& info : *g.mutable_input())
    if (!is_constant(info.name())) inputs.Add(std::move(info));
  if (inputs.size() < g.input_size() && model_.ir_version() < 4) model_.set_ir_version(4);
  g.mutable_input()->Swap(&inputs);
  index();
  return ok();
}

void Document::drop_dead() {
  GraphProto& g = graph();
  index();
  std::set<std::string> wanted;
  for (const auto& info : g.output()) wanted.insert(info.name());
  std::vector<bool> alive(static_cast<size_t>(g.node_size()));
  for (int n = g.node_size() - 1; n >= 0; --n) {
    for (const std::string& name : g.node(n).output())
      alive[static_cast<size_t>(n)] = alive[static_cast<size_t>(n)] || wanted.contains(name);
    if (alive[static_cast<size_t>(n)])
      for (const std::string& name : g.node(n).input()) wanted.insert(name);
  }
  google::protobuf::RepeatedPtrField<NodeProto> nodes;
  for (int n = 0; n < g.node_size(); ++n)
    if (alive[static_cast<size_t>(n)]) nodes.Add(std::move(*g.mutable_node(n)));
  g.mutable_node()->Swap(&nodes);
  google::protobuf::RepeatedPtrField<TensorProto> constants;
  for (TensorProto& proto : *g.mutable_initializer())
    if (wanted.contains(proto.name())) constants.Add(std::move(proto));
  g.mutable_initializer()->Swap(&constants);
  index();
  google::protobuf::RepeatedPtrField<::onnx::ValueInfoProto> infos;
  for (auto& info : *g.mutable_value_info())
    if (producer(info.name()) >= 0) infos.Add(std::move(info));
  g.mutable_value_info()->Swap(&infos);
}

Result<Graph> Document::to_graph() const {
  const std::string text = bytes();
  return read_onnx_bytes(std::as_bytes(std::span(text)), "", name_);
}

const ::onnx::AttributeProto* attribute(const NodeProto& node, const std::string& name) {
  for (const auto& a : node.attribute())
    if (a.name() == name) return &a;
  return nullptr;
}
int64_t int_attribute(const NodeProto& node, const std::string& name, int64_t otherwise) {
  const auto* a = attribute(node, name);
  return a ? a->i() : otherwise;
}
double float_attribute(const NodeProto& node, const std::string& name, double otherwise) {
  const auto* a = attribute(node, name);
  return a ? static_cast<double>(a->f()) : otherwise;
}
std::string text_attribute(const NodeProto& node, const std::string& name, const std::string& otherwise) {
  const auto* a = attribute(node, name);
  return a ? a->s() : otherwise;
}
std::optional<std::vector<int64_t>> ints_attribute(const NodeProto& node, const std::string& name) {
  const auto* a = attribute(node, name);
  if (!a) return std::nullopt;
  return std::vector<int64_t>(a->ints().begin(), a->ints().end());
}
void drop_attribute(NodeProto& node, const std::string& name) {
  for (int i = node.attribute_size() - 1; i >= 0; --i)
    if (node.attribute(i).name() == name) node.mutable_attribute()->DeleteSubrange(i, 1);
}
void set_attribute(NodeProto& node, const std::string& name, int64_t value) {
  drop_attribute(node, name);
  auto& a = *node.add_attribute();
  a.set_name(name);
  a.set_type(::onnx::AttributeProto::INT);
  a.set_i(value);
}
void set_attribute(NodeProto& node, const std::string& name, const std::vector<int64_t>& values) {
  drop_attribute(node, name);
  auto& a = *node.add_attribute();
  a.set_name(name);
  a.set_type(::onnx::AttributeProto::INTS);
  for (int64_t v : values) a.add_ints(v);
}
std::string input_of(const NodeProto& node, int input) { return input < node.input_size() ? node.input(input) : std::string(); }
std::string label_of(const NodeProto& node, int index) {
  return node.name().empty() ? node.op_type() + "_" + std::to_string(index) : node.name();
}
bool is_standard(const NodeProto& node) { return node.domain().empty() || node.domain() == "ai.onnx"; }

namespace {

// The graph for these inputs with every tensor of the model that is made by something.
Result<Graph> bound_with_all(Graph graph, const std::vector<InputBinding>& inputs) {
  graph.outputs.clear();
  graph.declared.clear();
  for (size_t t = 0; t < graph.tensors.size(); ++t)
    if (!graph.tensors[t].name.empty()) graph.outputs.push_back(static_cast<TensorId>(t));
  // Tensors that no operator makes - results that a form of an operator leaves out - are none to ask for.
  std::set<TensorId> made(graph.inputs.begin(), graph.inputs.end());
  for (const Op& op : graph.ops) made.insert(op.outputs.begin(), op.outputs.end());
  std::erase_if(graph.outputs, [&](TensorId id) { return !made.contains(id) && !graph.tensor(id).constant; });
  return sparkle::bind(graph, inputs);
}

}  // namespace

Result<std::map<std::string, TensorInfo>> infer_tensors(const Document& doc, const std::vector<InputBinding>& inputs) {
  SPARKLE_TRY(graph, doc.to_graph());
  return infer_tensors(graph, inputs);
}

Result<std::map<std::string, TensorInfo>> infer_tensors(const Graph& graph, const std::vector<InputBinding>& inputs) {
  SPARKLE_TRY(bound, bound_with_all(graph, inputs));
  std::map<std::string, TensorInfo> infos;
  for (const GraphTensor& t : bound.tensors)
    if (!t.name.empty()) infos.emplace(t.name, TensorInfo{t.dtype, t.shape});  // steps within a node come behind
  return infos;
}

Result<std::map<std::string, HostTensor>> constants_of(const Document& doc, const std::vector<InputBinding>& inputs) {
  SPARKLE_TRY(graph, doc.to_graph());
  return constants_of(graph, inputs);
}

Result<std::map<std::string, HostTensor>> constants_of(const Graph& graph, const std::vector<InputBinding>& inputs) {
  SPARKLE_TRY(bound, bound_with_all(graph, inputs));
  std::map<std::string, HostTensor> values;
  for (const GraphTensor& t : bound.tensors)
    if (t.constant && !t.name.empty()) values.emplace(t.name, *t.constant);
  return values;
}

Result<std::vector<InputBinding>> bindings_of(const Graph& graph, const std::map<std::string, Dims>& given) {
  std::vector<InputBinding> bindings;
  for (TensorId id : graph.inputs) {
    const GraphTensor& t = graph.tensor(id);
    if (const auto at = given.find(t.name); at != given.end()) {
      bindings.push_back({at->second, std::nullopt});
      continue;
    }
    Dims shape = t.shape;
    for (int a = 0; a < shape.size(); ++a)
      if (shape[a] < 0 && a > 0)
        return Error{Reason::bad_usage, "The model leaves sizes of its input '" + t.name +
                                            "' open; say which to work with by "
                                            "--shape '" +
                                            t.name + "=...'."};
      else if (shape[a] < 0) shape[a] = 1;
    bindings.push_back({shape, std::nullopt});
  }
  return bindings;
}

}  // namespace sparkle::fix
