#include "onnx/functions.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include "onnx/reader.h"

namespace sparkle {
namespace {
using ::onnx::AttributeProto;
using ::onnx::FunctionProto;
using ::onnx::GraphProto;
using ::onnx::NodeProto;

using Nodes = google::protobuf::RepeatedPtrField<NodeProto>;
using Attributes = std::map<std::string, const AttributeProto*>;

constexpr size_t kMostNodes = 1 << 17;
constexpr size_t kMostBytes = size_t{1} << 30;
constexpr size_t kDeepest = 64;  // calls within calls

// Attributes with a default are field 11 of a function, which came after this message's description.
std::vector<AttributeProto> defaults_of(const FunctionProto& function) {
  constexpr int kField = 11;
  std::vector<AttributeProto> list;
  const std::string& fields = function.unknown_fields();
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t*>(fields.data()),
                                                static_cast<int>(fields.size()));
  constexpr uint32_t kTag = kField << 3 | 2;  // of a message
  while (const uint32_t tag = stream.ReadTag()) {
    if (tag != kTag) {
      if (!google::protobuf::internal::WireFormatLite::SkipField(&stream, tag)) break;
      continue;
    }
    uint32_t bytes = 0;
    std::string text;
    AttributeProto attribute;
    if (!stream.ReadVarint32(&bytes) || bytes > fields.size() || !stream.ReadString(&text, static_cast<int>(bytes))) break;
    if (attribute.ParseFromString(text)) list.push_back(std::move(attribute));
  }
  return list;
}

bool is_standard(const std::string& domain) { return domain.empty() || domain == "ai.onnx"; }

class Inliner {
 public:
  Inliner(::onnx::ModelProto& model, const std::string& where) : where_(where) {
    for (const FunctionProto& f : model.functions()) functions_[{f.domain(), f.name()}] = &f;
  }

  Status inline_in(GraphProto& graph, int64_t opset) {
    for (NodeProto& node : *graph.mutable_node()) SPARKLE_CHECK(inline_in_bodies(node, opset));
    return expand(*graph.mutable_node(), opset);
  }
  FunctionOpsets& opsets() { return opsets_; }

 private:
  struct Call {
    const NodeProto& node;
    std::string head;  // of names that are the function's own
    std::map<std::string, std::string> names;
    Attributes attributes;
  };

  Error error(Reason reason, const std::string& what) const { return {reason, "'" + where_ + "': " + what + "."}; }

  const FunctionProto* function_of(const NodeProto& node) const {
    const auto at = functions_.find({node.domain(), node.op_type()});
    return at == functions_.end() ? nullptr : at->second;
  }

  Status inline_in_bodies(NodeProto& node, int64_t opset) {
    for (AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) SPARKLE_CHECK(inline_in(*attribute.mutable_g(), opset));
      for (GraphProto& graph : *attribute.mutable_graphs()) SPARKLE_CHECK(inline_in(graph, opset));
    }
    return ok();
  }

  // `opset`: that of the function whose nodes these are; 0: of the model itself.
  Status expand(Nodes& nodes, int64_t opset) {
    const bool any = std::any_of(nodes.begin(), nodes.end(), [&](const NodeProto& node) { return function_of(node); });
    if (opset != 0)
      for (const NodeProto& node : nodes)
        if (!function_of(node)) opsets_[&node] = opset;
    if (!any) return ok();
    Nodes whole;
    for (int i = 0; i < nodes.size(); ++i) {
      NodeProto& node = *nodes.Mutable(i);
      if (const FunctionProto* function = function_of(node)) {
        SPARKLE_CHECK(expand_call(node, *function, whole));
      } else {
        NodeProto* moved = whole.Add();
        moved->Swap(&node);
        if (const auto at = opsets_.find(&node); at != opsets_.end()) {
          const int64_t version = at->second;
          opsets_.erase(at);
          opsets_[moved] = version;
        }
      }
    }
    nodes.Swap(&whole);
    return ok();
  }

  Status expand_call(const NodeProto& node, const FunctionProto& function, Nodes& whole) {
    const std::string named = "function '" + function.name() + "' of domain '" + function.domain() + "'";
    if (std::find(active_.begin(), active_.end(), &function) != active_.end())
      return error(Reason::bad_model, "its " + named + " calls itself, which no run would end");
    if (active_.size() >= kDeepest)
      return error(Reason::bad_model, "its " + named + " is called within more than " + std::to_string(kDeepest) + " others");
    nodes_ += static_cast<size_t>(function.node_size()) + 1;
    bytes_ += function.ByteSizeLong();
    if (nodes_ > kMostNodes || bytes_ > kMostBytes)
      return error(Reason::size_overflow, "its functions, each put in the place of its calls, come to more than " +
                                              std::to_string(kMostNodes) + " nodes or 1 GiB");
    if (node.input_size() > function.input_size() || node.output_size() > function.output_size())
      return error(Reason::bad_model,
                   "node '" + node.name() + "' gives its " + named + " " + std::to_string(node.input_size()) +
                       " inputs and takes " + std::to_string(node.output_size()) + " outputs, but it has " +
                       std::to_string(function.input_size()) + " and " + std::to_string(function.output_size()));
    Call call{node, (node.name().empty() ? function.name() : node.name()) + "#" + std::to_string(++calls_) + "/", {}, {}};
    for (int i = 0; i < function.input_size(); ++i)
      call.names[function.input(i)] = i < node.input_size() ? node.input(i) : std::string();
    std::vector<std::pair<std::string, std::string>> passed_on;  // inputs that are outputs at once
    for (int i = 0; i < function.output_size(); ++i) {
      if (i >= node.output_size() || node.output(i).empty()) continue;
      const auto [at, first] = call.names.emplace(function.output(i), node.output(i));
      if (!first) passed_on.emplace_back(at->second, node.output(i));
    }
    const std::vector<AttributeProto> defaults = defaults_of(function);
    for (const AttributeProto& given : defaults) call.attributes[given.name()] = &given;
    for (const AttributeProto& given : node.attribute()) call.attributes[given.name()] = &given;
    int64_t opset = 0;
    for (const auto& entry : function.opset_import())
      if (is_standard(entry.domain())) opset = entry.version();
    if (opset < 0 || opset > kNewestOpset)
      return error(Reason::operator_not_served, "its " + named + " wants opset " + std::to_string(opset) + "; opsets 1 to " +
                                                    std::to_string(kNewestOpset) + " are supported");
    Nodes inside;
    for (const NodeProto& own : function.node()) {
      NodeProto* copy = inside.Add();
      *copy = own;
      rename(*copy, call);
    }
    for (const auto& [from, to] : passed_on) {
      NodeProto* copy = inside.Add();
      copy->set_op_type("Identity"), copy->set_name(call.head + "passed_on");
      copy->add_input(from), copy->add_output(to);
    }
    active_.push_back(&function);
    Status done = ok();
    for (NodeProto& own : inside)
      if (done.ok()) done = inline_in_bodies(own, opset == 0 ? 1 : opset);
    if (done.ok()) done = expand(inside, opset == 0 ? 1 : opset);
    active_.pop_back();
    SPARKLE_CHECK(std::move(done));
    // One by one, as pointers: a node keeps its address, by which its opset is known.
    std::vector<NodeProto*> all(static_cast<size_t>(inside.size()));
    if (!all.empty()) inside.ExtractSubrange(0, inside.size(), all.data());
    for (NodeProto* one : all) whole.AddAllocated(one);
    return ok();
  }

  static std::string renamed(const std::string& name, const Call& call) {
    if (name.empty()) return name;
    const auto at = call.names.find(name);
    return at == call.names.end() ? call.head + name : at->second;
  }

  void rename(NodeProto& node, const Call& call) {
    node.set_name(call.head + (node.name().empty() ? node.op_type() : node.name()));
    for (std::string& name : *node.mutable_input()) name = renamed(name, call);
    for (std::string& name : *node.mutable_output()) name = renamed(name, call);
    auto& list = *node.mutable_attribute();
    for (int i = 0; i < list.size();) {
      AttributeProto& attribute = *list.Mutable(i);
      if (!attribute.ref_attr_name().empty()) {
        const auto at = call.attributes.find(attribute.ref_attr_name());
        if (at == call.attributes.end()) {  // not given: the operator's own default
          list.DeleteSubrange(i, 1);
          continue;
        }
        const std::string name = attribute.name();
        attribute = *at->second;
        attribute.set_name(name);
      } else {
        if (attribute.has_g()) rename(*attribute.mutable_g(), call);
        for (GraphProto& graph : *attribute.mutable_graphs()) rename(graph, call);
      }
      ++i;
    }
  }

  void rename(GraphProto& graph, const Call& call) {
    for (auto& info : *graph.mutable_input()) info.set_name(renamed(info.name(), call));
    for (auto& info : *graph.mutable_output()) info.set_name(renamed(info.name(), call));
    for (auto& info : *graph.mutable_value_info()) info.set_name(renamed(info.name(), call));
    for (auto& tensor : *graph.mutable_initializer()) tensor.set_name(renamed(tensor.name(), call));
    for (NodeProto& node : *graph.mutable_node()) rename(node, call);
  }

  const std::string& where_;
  std::map<std::pair<std::string, std::string>, const FunctionProto*> functions_;
  std::vector<const FunctionProto*> active_;
  FunctionOpsets opsets_;
  size_t nodes_ = 0, bytes_ = 0, calls_ = 0;
};

}  // namespace

Result<FunctionOpsets> inline_functions(::onnx::ModelProto& model, const std::string& where) {
  if (model.functions_size() == 0) return FunctionOpsets{};
  Inliner inliner(model, where);
  SPARKLE_CHECK(inliner.inline_in(*model.mutable_graph(), 0));
  return std::move(inliner.opsets());
}

void names_from_outside(const GraphProto& graph, std::unordered_set<std::string>& names) {
  std::unordered_set<std::string> own, read;
  for (const auto& info : graph.input()) own.insert(info.name());
  for (const auto& tensor : graph.initializer()) own.insert(tensor.name());
  for (const NodeProto& node : graph.node()) {
    for (const std::string& name : node.output()) own.insert(name);
    for (const std::string& name : node.input()) read.insert(name);
    for (const AttributeProto& attribute : node.attribute())
      if (attribute.has_g()) names_from_outside(attribute.g(), read);
  }
  for (const auto& info : graph.output()) read.insert(info.name());
  for (const std::string& name : read)
    if (!name.empty() && !own.contains(name)) names.insert(name);
}

}  // namespace sparkle
