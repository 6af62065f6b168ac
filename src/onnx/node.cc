#include "onnx/node.h"

#include "onnx/tensor_proto.h"

namespace sparkle {
using ::onnx::AttributeProto;

Node::Node(Import& import, ::onnx::NodeProto& proto, std::string name, int64_t node_opset)
    : opset(node_opset),
      import_(import),
      proto_(proto),
      name_(std::move(name)),
      read_(static_cast<size_t>(proto.attribute_size()), false) {
  standard_ = proto.domain().empty() || proto.domain() == "ai.onnx";
  type_ = standard_ ? proto.op_type() : proto.domain() + "." + proto.op_type();
}

void Node::fail(Reason reason, const std::string& what) {
  if (!problem_) problem_ = Refusal{name_, type_, reason, "it " + what};
}
void Node::fail(const Error& error) {
  std::string why = error.message;
  if (why.ends_with('.')) why.pop_back();
  if (!problem_) problem_ = Refusal{name_, type_, error.reason, std::move(why)};
}

AttributeProto* Node::find(std::string_view name) {
  for (int i = 0; i < proto_.attribute_size(); ++i) {
    if (proto_.attribute(i).name() != name) continue;
    read_[static_cast<size_t>(i)] = true;
    return proto_.mutable_attribute(i);
  }
  return nullptr;
}

// The oldest files leave the attribute's type out; the value then says it.
AttributeProto* Node::find(std::string_view name, AttributeProto::AttributeType type, std::string_view kind) {
  AttributeProto* attribute = find(name);
  if (attribute && attribute->type() != AttributeProto::UNDEFINED && attribute->type() != type) {
    fail(Reason::bad_model, "gives its attribute '" + std::string(name) + "' another type than " + std::string(kind));
    return nullptr;
  }
  return attribute;
}

bool Node::has(std::string_view name) { return find(name) != nullptr; }

int64_t Node::integer(std::string_view name, int64_t fallback) {
  const auto* attribute = find(name, AttributeProto::INT, "an integer");
  return attribute ? attribute->i() : fallback;
}

double Node::real(std::string_view name, double fallback) {
  const auto* attribute = find(name, AttributeProto::FLOAT, "a number");
  return static_cast<double>(attribute ? attribute->f() : static_cast<float>(fallback));
}

std::string Node::text(std::string_view name, std::string_view fallback) {
  const auto* attribute = find(name, AttributeProto::STRING, "text");
  return attribute ? attribute->s() : std::string(fallback);
}

std::vector<int64_t> Node::integers(std::string_view name) {
  const auto* attribute = find(name, AttributeProto::INTS, "a list of integers");
  if (!attribute) return {};
  return {attribute->ints().begin(), attribute->ints().end()};
}

std::vector<double> Node::reals(std::string_view name) {
  const auto* attribute = find(name, AttributeProto::FLOATS, "a list of numbers");
  if (!attribute) return {};
  return {attribute->floats().begin(), attribute->floats().end()};
}

std::vector<std::string> Node::texts(std::string_view name) {
  const auto* attribute = find(name, AttributeProto::STRINGS, "a list of texts");
  if (!attribute) return {};
  return {attribute->strings().begin(), attribute->strings().end()};
}

Dims Node::dims(std::string_view name) {
  const std::vector<int64_t> values = integers(name);
  if (values.size() > static_cast<size_t>(kMaxRank)) {
    fail(Reason::operator_not_served, "gives " + std::to_string(values.size()) + " values in '" + std::string(name) +
                                          "'; at most " + std::to_string(kMaxRank) + " are supported");
    return {};
  }
  return Dims(std::span<const int64_t>(values));
}

::onnx::TensorProto* Node::tensor(std::string_view name) {
  auto* attribute = find(name, AttributeProto::TENSOR, "a tensor");
  return attribute ? attribute->mutable_t() : nullptr;
}

bool Node::body(std::string_view name, HostOp& op) {
  auto* attribute = find(name, AttributeProto::GRAPH, "a graph");
  if (!attribute) {
    fail(Reason::bad_model, "lacks its attribute '" + std::string(name) + "'");
    return false;
  }
  auto made = import_.read_body(*attribute->mutable_g(), name_);
  if (!made.ok()) {
    fail(made.error());
    return false;
  }
  op.bodies.push_back(std::move(made->graph));
  inputs.insert(inputs.end(), made->read.begin(), made->read.end());
  return true;
}

std::string Node::unread_attribute() const {
  for (size_t i = 0; i < read_.size(); ++i)
    if (!read_[i]) return proto_.attribute(static_cast<int>(i)).name();
  return {};
}

const HostTensor* Node::constant(int i) const {
  if (!given(i)) return nullptr;
  const auto& value = import_.graph.tensor(input(i)).constant;
  return value ? &*value : nullptr;
}

int Node::rank(int i) const {
  if (!given(i)) return -1;
  const GraphTensor& tensor = import_.graph.tensor(input(i));
  if (tensor.constant) return tensor.constant->shape.size();
  if (tensor.rank_known) return tensor.shape.size();
  const auto at = import_.declared.find(tensor.name);
  if (at == import_.declared.end() || !at->second->type().tensor_type().has_shape()) return -1;
  return at->second->type().tensor_type().shape().dim_size();
}

std::optional<DType> Node::element_type(int i) const {
  if (!given(i)) return std::nullopt;
  const GraphTensor& tensor = import_.graph.tensor(input(i));
  if (tensor.constant) return tensor.constant->dtype;
  const auto at = import_.declared.find(tensor.name);
  if (at == import_.declared.end()) return std::nullopt;
  return dtype_from_onnx(at->second->type().tensor_type().elem_type());
}

bool Node::output_used(int i) const {
  return i < proto_.output_size() && !proto_.output(i).empty() && import_.used.contains(proto_.output(i));
}

TensorId Node::step(OpParams params, std::vector<TensorId> step_inputs) {
  GraphTensor tensor;
  tensor.name = name_ + ":" + std::to_string(++steps_);
  std::string step_name = tensor.name;
  const TensorId id = import_.graph.add(std::move(tensor));
  import_.graph.ops.push_back({std::move(step_name), type_, std::move(params), std::move(step_inputs), {id}});
  return id;
}

TensorId Node::number_like(double value, TensorId like) {
  const std::vector<double> one{value};
  const TensorId number =
      import_.graph.add_constant(name_ + ":number" + std::to_string(++steps_), HostTensor::of(DType::f64, {}, one));
  return step(CastOp{}, {number, like});
}

void Node::emit(OpParams params, std::vector<TensorId> from, std::vector<TensorId> to, const std::string& suffix) {
  import_.graph.ops.push_back({name_ + suffix, type_, std::move(params), std::move(from), std::move(to)});
}

void Node::define(HostTensor value) {
  defined_ = true;
  if (outputs.empty() || outputs[0] < 0) return;
  GraphTensor& tensor = import_.graph.tensor(outputs[0]);
  tensor.dtype = value.dtype;
  tensor.shape = value.shape;
  tensor.known = tensor.rank_known = true;
  tensor.constant = std::move(value);
}

}  // namespace sparkle
