#include "onnx/reader.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>

#include "base/system/out_of_memory.h"
#include "base/files/mapped_file.h"
#include "graph/refusals.h"
#include "onnx/functions.h"
#include "onnx/node.h"
#include "onnx/operators/operators.h"
#include "onnx/order.h"
#include "onnx/tensor_proto.h"

namespace sparkle {
namespace {
using ::onnx::GraphProto;
using ::onnx::ModelProto;
using ::onnx::NodeProto;
using ::onnx::ValueInfoProto;

bool is_standard(const std::string& domain) { return domain.empty() || domain == "ai.onnx"; }

class Reader {
 public:
  Reader(ModelProto& model, const FunctionOpsets& opsets, const std::string& folder, const std::string& name,
         ExternalData external)
      : model_(model), file_(*model.mutable_graph()), opsets_(opsets) {
    import_.where = name;
    import_.folder = folder;
    if (external == ExternalData::mapped) import_.maps.emplace();
    read_bodies();
  }

  Result<Graph> read() {
    import_.graph.name = file_.name();
    SPARKLE_CHECK(read_opsets());
    SPARKLE_CHECK(read_graph());
    if (!refusals_.empty()) return all_refused();
    // As many constants more as the file holds, and each may be moved about a few times.
    for (const GraphTensor& t : import_.graph.tensors)
      if (t.constant)
        import_.graph.folding.bytes += t.constant->size_bytes(), import_.graph.folding.work += 16 * t.constant->elements();
    return std::move(import_.graph);
  }

 private:
  // A graph in an attribute of a node.
  Reader(GraphProto& body, Reader& outer)
      : model_(outer.model_), file_(body), opsets_(outer.opsets_), outer_(&outer), depth_(outer.depth_ + 1) {
    import_.where = outer.import_.where;
    import_.folder = outer.import_.folder;
    if (outer.import_.maps) import_.maps.emplace();
    import_.graph.opset = outer.import_.graph.opset;
    import_.graph.name = outer.import_.graph.name;
    read_bodies();
  }

  void read_bodies() {
    import_.read_body = [this](GraphProto& file, const std::string& node) { return read_body(file, node); };
  }

  Result<Body> read_body(GraphProto& file, const std::string& node) {
    constexpr int kDeepest = 32;
    if (depth_ >= kDeepest)
      return Error{Reason::operator_not_served, "it lies in more than " + std::to_string(kDeepest) + " graphs within graphs"};
    Reader reader(file, *this);
    if (Status read = reader.read_graph(); !read.ok()) {
      Error error = read.take_error();
      const std::string head = "'" + import_.where + "': ";
      if (error.message.starts_with(head)) error.message = "in its graph " + error.message.substr(head.size());
      return error;
    }
    for (Refusal& refusal : reader.refusals_) {
      refusal.name = node + "/" + refusal.name;
      refusals_.push_back(std::move(refusal));
    }
    Graph& graph = reader.import_.graph;
    Body body;
    for (const auto& [inside, outside] : reader.read_outside_) {
      graph.inputs.push_back(inside);
      body.read.push_back(outside);
    }
    body.graph = std::make_shared<const Graph>(std::move(graph));
    return body;
  }

  Status read_graph() {
    note_declarations();
    SPARKLE_CHECK(read_initializers());
    SPARKLE_CHECK(read_inputs());
    SPARKLE_CHECK(claim_outputs());
    SPARKLE_CHECK(sort_nodes());
    for (int node : order_) read_node(node);
    return read_outputs();
  }

  // The tensor of a name, here or in a graph around this one; then it becomes an input of this one, or a constant.
  std::optional<TensorId> resolve(const std::string& name) {
    if (const auto at = import_.ids.find(name); at != import_.ids.end()) return at->second;
    if (!outer_) return std::nullopt;
    const auto outside = outer_->resolve(name);
    if (!outside) return std::nullopt;
    const GraphTensor& theirs = outer_->import_.graph.tensor(*outside);
    GraphTensor tensor;
    tensor.name = name;
    tensor.dtype = theirs.dtype;
    if (theirs.constant) tensor = theirs;
    const TensorId id = import_.graph.add(std::move(tensor));
    import_.ids.emplace(name, id);
    if (const auto said = outer_->import_.declared.find(name); said != outer_->import_.declared.end())
      import_.declared.emplace(name, said->second);
    if (!theirs.constant) read_outside_.emplace_back(id, *outside);
    return id;
  }

  Error error(Reason reason, const std::string& what) const { return {reason, "'" + import_.where + "': " + what + "."}; }

  std::string node_name(int index) const {
    const NodeProto& node = file_.node(index);
    return node.name().empty() ? node.op_type() + "_" + std::to_string(index) : node.name();
  }

  // What is wrong with one tensor or node does not hide what is wrong with the others.
  void refuse(const Node& node, Reason reason, const std::string& why) {
    refusals_.push_back({node.name(), node.type(), reason, why});
  }
  void refuse_tensor(const std::string& name, Reason reason, const std::string& why) {
    refusals_.push_back({name, "", reason, why});
  }

  // Contradictions, and operators that are not supported beside them.
  Error all_refused() {
    for (const Op& op : import_.graph.ops)
      if (const auto* no = std::get_if<UnknownOp>(&op.params))
        refusals_.push_back({op.name, op.type, Reason::operator_not_served, no->why});
    for (const Op& op : import_.graph.ops) refuse_inside(op);
    return refused(import_.where, refusals_);
  }

  void refuse_inside(const Op& op) {
    const auto* host = std::get_if<HostOp>(&op.params);
    if (!host) return;
    for (const auto& body : host->bodies)
      for (const Op& inside : body->ops) {
        if (const auto* no = std::get_if<UnknownOp>(&inside.params))
          refusals_.push_back({op.name + "/" + inside.name, inside.type, Reason::operator_not_served, no->why});
        refuse_inside(inside);
      }
  }

  // One version of each set of operators; giving the same one twice is harmless.
  Status read_opsets() {
    std::map<std::string, int64_t> versions;
    for (const auto& entry : model_.opset_import()) {
      const std::string domain = is_standard(entry.domain()) ? "" : entry.domain();
      const auto [at, first] = versions.emplace(domain, entry.version());
      if (!first && at->second != entry.version())
        return error(Reason::bad_model,
                     "it imports two versions of the operators of '" + (domain.empty() ? std::string("ai.onnx") : domain) +
                         "', " + std::to_string(at->second) + " and " + std::to_string(entry.version()) + "; leave one");
      if (domain.empty()) import_.graph.opset = entry.version();
    }
    if (import_.graph.opset == 0 && model_.ir_version() < 3) import_.graph.opset = 1;  // the rule before opsets were imported
    for (const NodeProto& node : file_.node())
      if (is_standard(node.domain()) && import_.graph.opset == 0 && !opsets_.contains(&node))
        return error(Reason::bad_model, "it uses standard operators but imports no version of them (opset_import)");
    if (import_.graph.opset == 0 && !opsets_.empty()) import_.graph.opset = opsets_.begin()->second;
    if (import_.graph.opset < 0 || import_.graph.opset > kNewestOpset)
      return error(Reason::operator_not_served, "it wants opset " + std::to_string(import_.graph.opset) + "; opsets 1 to " +
                                                    std::to_string(kNewestOpset) + " are supported");
    for (int i = 0; i < file_.node_size(); ++i)
      if (const std::string& domain = file_.node(i).domain();
          !is_standard(domain) && !versions.contains(domain) && !opsets_.contains(&file_.node(i)))
        return error(Reason::bad_model, "node '" + node_name(i) + "' (" + domain + "." + file_.node(i).op_type() +
                                            ") is of a domain of which the model imports no version (opset_import)");
    return ok();
  }

  void note_declarations() {
    for (const ValueInfoProto& info : file_.value_info()) import_.declared[info.name()] = &info;
    for (const ValueInfoProto& info : file_.output()) import_.declared[info.name()] = &info;
    for (const ValueInfoProto& info : file_.input()) import_.declared[info.name()] = &info;
    for (const NodeProto& node : file_.node())
      for (const std::string& name : node.input()) import_.used.insert(name);
    for (const NodeProto& node : file_.node())
      for (const auto& attribute : node.attribute())
        if (attribute.has_g()) names_from_outside(attribute.g(), import_.used);
    for (const ValueInfoProto& info : file_.output()) import_.used.insert(info.name());
  }

  Result<TensorId> claim(const std::string& name, const std::string& by) {
    GraphTensor tensor;
    tensor.name = name;
    const TensorId id = import_.graph.add(std::move(tensor));
    if (!import_.ids.emplace(name, id).second)
      return error(Reason::bad_model, "tensor '" + name + "' is defined twice, the second time by " + by);
    return id;
  }

  Status read_initializers() {
    if (file_.sparse_initializer_size() > 0)
      return error(Reason::bad_model, "its sparse initializers are not supported; write them as dense ones");
    for (auto& proto : *file_.mutable_initializer()) {
      const std::string name = proto.name();
      SPARKLE_TRY(id, claim(name, "an initializer"));
      auto value = take_tensor(proto, "'" + import_.where + "': tensor '" + name + "'", import_.folder, import_.external());
      if (!value.ok() && value.error().reason == Reason::type_not_served) {  // of which there may be many
        refuse_tensor(name, Reason::type_not_served,
                      "its element type " + onnx_type_name(proto.data_type()) + " is not supported");
        continue;
      }
      if (!value.ok()) return value.take_error();
      GraphTensor& tensor = import_.graph.tensor(id);
      tensor.dtype = value->dtype;
      tensor.shape = value->shape;
      tensor.known = tensor.rank_known = true;
      tensor.constant = std::move(*value);
    }
    return ok();
  }

  // Type and shape as declared; sizes that are not given are -1.
  Status declare(GraphTensor& tensor, const ValueInfoProto& info) {
    const std::string what = "'" + import_.where + "': tensor '" + info.name() + "'";
    if (outer_) {  // what a body is given tells its type and shape
      if (const auto dtype = dtype_from_onnx(info.type().tensor_type().elem_type())) tensor.dtype = *dtype;
      return ok();
    }
    if (!info.type().has_tensor_type()) {
      refuse_tensor(info.name(), Reason::type_not_served, "it is not declared as a tensor, which is all that is supported");
      return ok();
    }
    const auto& type = info.type().tensor_type();
    const auto dtype = dtype_from_onnx(type.elem_type());
    if (!dtype) {
      refuse_tensor(info.name(), Reason::type_not_served,
                    "its element type " + onnx_type_name(type.elem_type()) + " is not supported");
      return ok();
    }
    tensor.dtype = *dtype;
    if (!type.has_shape()) return ok();
    std::vector<int64_t> sizes;
    bool named = false;
    tensor.known = true;
    for (const auto& dim : type.shape().dim()) {
      sizes.push_back(dim.has_dim_value() ? dim.dim_value() : 1);
      named = named || !dim.dim_param().empty();
    }
    SPARKLE_TRY(shape, checked_shape(what, sizes.data(), static_cast<int>(sizes.size())));
    tensor.rank_known = true;
    tensor.shape = shape;
    for (int i = 0; i < shape.size(); ++i) {
      const auto& dim = type.shape().dim(i);
      if (!dim.has_dim_value()) {
        tensor.shape[i] = -1;
        tensor.known = false;
      }
      if (named) tensor.axis_names.push_back(dim.dim_param());
    }
    return ok();
  }

  Status read_inputs() {
    for (const ValueInfoProto& info : file_.input()) {
      // Older files list initializers as inputs too: they are defaults, not inputs.
      const auto at = import_.ids.find(info.name());
      if (at != import_.ids.end() && import_.graph.tensor(at->second).constant) continue;
      SPARKLE_TRY(id, claim(info.name(), "a graph input"));
      SPARKLE_CHECK(declare(import_.graph.tensor(id), info));
      import_.graph.inputs.push_back(id);
    }
    return ok();
  }

  Status claim_outputs() {
    for (int i = 0; i < file_.node_size(); ++i)
      for (const std::string& name : file_.node(i).output()) {
        if (name.empty()) continue;
        SPARKLE_TRY(id, claim(name, "node '" + node_name(i) + "'"));
        producer_.emplace(id, i);
      }
    return ok();
  }

  Status sort_nodes() {
    std::vector<std::vector<int>> needs(static_cast<size_t>(file_.node_size()));
    for (int i = 0; i < file_.node_size(); ++i)
      for (const std::string& name : file_.node(i).input()) {
        if (name.empty()) continue;
        const auto at = resolve(name);
        if (!at)
          return error(Reason::bad_model, "node '" + node_name(i) + "' (" + file_.node(i).op_type() + ") reads '" + name +
                                              "', which nothing defines");
        if (const auto by = producer_.find(*at); by != producer_.end()) needs[static_cast<size_t>(i)].push_back(by->second);
      }
    for (int i = 0; i < file_.node_size(); ++i)
      for (const auto& attribute : file_.node(i).attribute()) {
        if (!attribute.has_g()) continue;
        std::unordered_set<std::string> names;
        names_from_outside(attribute.g(), names);
        for (const std::string& name : names)
          if (const auto at = resolve(name))  // else the body says so
            if (const auto by = producer_.find(*at); by != producer_.end()) needs[static_cast<size_t>(i)].push_back(by->second);
      }
    order_ = topological_order(needs);
    if (order_.size() == needs.size()) return ok();
    std::vector<bool> sorted(needs.size(), false);
    for (int i : order_) sorted[static_cast<size_t>(i)] = true;
    const auto stuck = std::find(sorted.begin(), sorted.end(), false) - sorted.begin();
    return error(Reason::bad_model,
                 "node '" + node_name(static_cast<int>(stuck)) + "' waits for its own result: the graph has a cycle");
  }

  // The tensors of a list of names; empty names at its end are as good as none.
  std::vector<TensorId> tensors(const google::protobuf::RepeatedPtrField<std::string>& names) const {
    std::vector<TensorId> list;
    for (const std::string& name : names) list.push_back(name.empty() ? kAbsent : import_.ids.find(name)->second);
    while (!list.empty() && list.back() == kAbsent) list.pop_back();
    return list;
  }

  std::string why_unknown(const NodeProto& node, const OperatorVersions* versions) const {
    if (!is_standard(node.domain())) return "no operator of domain '" + node.domain() + "' has this name here";
    return versions ? "this operator is not supported" : "ONNX has no operator of this name";
  }

  // Whether the model's opset has the operator at all, and its inputs and outputs. False: something was refused.
  bool check_versions(const Node& node, const OperatorVersions& versions) {
    const std::string opset = "opset " + std::to_string(node.opset);
    if (node.standard() && node.opset < versions.since()) {
      refuse(node, Reason::bad_model,
             "the model imports " + opset + ", but this operator came with opset " + std::to_string(versions.since()));
      return false;
    }
    if (node.standard() && versions.withdrawn != 0 && node.opset >= versions.withdrawn) {
      refuse(
          node, Reason::bad_model,
          "the model imports " + opset + ", but this operator was withdrawn with opset " + std::to_string(versions.withdrawn));
      return false;
    }
    const OperatorForm& form = node.standard() ? versions.in(node.opset) : versions.forms[0];
    const auto too_many = [&](size_t count, int most, const char* what) {
      if (count <= static_cast<size_t>(most)) return false;
      refuse(node, Reason::bad_model,
             "it has " + std::to_string(count) + " " + what + "s, in " + opset + " it has at most " + std::to_string(most));
      return true;
    };
    return !too_many(node.inputs.size(), form.most_inputs, "input") &&
           !too_many(node.outputs.size(), form.most_outputs, "output");
  }

  bool check_arguments(const Node& node, const OperatorRow& row, const OperatorVersions& versions) {
    if (!check_versions(node, versions)) return false;
    const int count = static_cast<int>(node.inputs.size());
    const OperatorForm& form = node.standard() ? versions.in(node.opset) : versions.forms[0];
    const int needed = form.most_inputs == kAny && row.min_inputs > 0 ? std::max(count, row.min_inputs) : row.min_inputs;
    for (int i = 0; i < needed; ++i)
      if (!node.given(i)) return refuse(node, Reason::bad_model, "it lacks its input " + std::to_string(i)), false;
    constexpr std::string_view kFirstMayLack[] = {"If", "Loop", "Scan", "RNN", "GRU", "LSTM"};
    const bool first_may_lack =
        std::find(std::begin(kFirstMayLack), std::end(kFirstMayLack), node.type()) != std::end(kFirstMayLack);
    if (node.outputs.empty() || (node.outputs[0] == kAbsent && !first_may_lack))
      return refuse(node, Reason::bad_model, "it has no first output"), false;
    return true;
  }

  void read_node(int index) {
    NodeProto& proto = *file_.mutable_node(index);
    const auto own_opset = opsets_.find(&proto);
    Node node(import_, proto, node_name(index), own_opset == opsets_.end() ? import_.graph.opset : own_opset->second);
    node.inputs = tensors(proto.input());
    node.outputs = tensors(proto.output());
    const OperatorVersions* versions = versions_of(node.type());
    const OperatorRow* row = find_operator(proto.domain(), proto.op_type());
    if (!row || !versions) {
      if (!versions || check_versions(node, *versions))
        node.emit(UnknownOp{why_unknown(proto, versions)}, node.inputs, node.outputs);
      return;
    }
    if (!check_arguments(node, *row, *versions)) return;
    const std::vector<TensorId> inputs = node.inputs, outputs = node.outputs;
    node.ignore("consumed_inputs");  // a hint of the first opsets
    OpParams params = row->read(node);
    if (node.problem()) {
      refusals_.push_back(*node.problem());
      return;
    }
    if (node.defined()) return;
    if (const std::string unread = node.unread_attribute(); !unread.empty() && !std::holds_alternative<UnknownOp>(params))
      params = UnknownOp{"its attribute '" + unread + "' is not supported in opset " + std::to_string(node.opset)};
    if (std::holds_alternative<UnknownOp>(params)) {
      node.emit(std::move(params), inputs, outputs);
    } else {
      node.emit(std::move(params), node.inputs, node.outputs);
    }
  }

  Status read_outputs() {
    for (const ValueInfoProto& info : file_.output()) {
      const auto at = resolve(info.name());
      if (!at) return error(Reason::bad_model, "its output '" + info.name() + "' is defined by no node");
      GraphTensor& tensor = import_.graph.tensor(*at);
      const bool input = std::find(import_.graph.inputs.begin(), import_.graph.inputs.end(), *at) != import_.graph.inputs.end();
      if (outer_) {
        import_.graph.outputs.push_back(*at);
        continue;
      }
      DeclaredOutput declared;
      if (info.type().has_tensor_type()) {
        GraphTensor said;
        SPARKLE_CHECK(declare(said, info));
        declared = {said.dtype, said.rank_known, said.shape};
        if (!tensor.constant && !input) {
          said.name = tensor.name;
          said.known = false;  // until its nodes say so
          tensor = std::move(said);
        }
      }
      import_.graph.outputs.push_back(*at);
      import_.graph.declared.push_back(declared);
    }
    if (import_.graph.outputs.empty()) return error(Reason::bad_model, "it has no outputs");
    return ok();
  }

  ModelProto& model_;
  GraphProto& file_;
  const FunctionOpsets& opsets_;
  Reader* outer_ = nullptr;
  int depth_ = 0;
  std::vector<std::pair<TensorId, TensorId>> read_outside_;  // tensors here, and what they are in the graph around this one
  Import import_;
  std::unordered_map<TensorId, int> producer_;
  std::vector<int> order_;
  std::vector<Refusal> refusals_;
};

Result<Graph> parsed(std::span<const std::byte> bytes, const std::string& folder, const std::string& name,
                     ExternalData external) {
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max()))
    return Error{Reason::size_overflow, "'" + name +
                                            "' is larger than 2 GiB, the most that the format allows; keep its "
                                            "weights as external data."};
  ModelProto model;
  if (!model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return Error{Reason::bad_format, "'" + name + "' is no ONNX model or is cut short."};
  if (!model.has_graph()) return Error{Reason::bad_format, "'" + name + "' is no ONNX model: it holds no graph."};
  SPARKLE_TRY(opsets, inline_functions(model, name));
  return Reader(model, opsets, folder, name, external).read();
}
}  // namespace

Result<Graph> read_onnx_bytes(std::span<const std::byte> bytes, const std::string& folder, const std::string& name,
                              ExternalData external) {
  return guard_memory("Reading the model", [&] { return parsed(bytes, folder, name, external); });
}

Result<Graph> read_onnx(const std::string& path, ExternalData external) {
  SPARKLE_TRY(file, MappedFile::open(path));
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return read_onnx_bytes(file.bytes(), folder.empty() ? "." : folder, path, external);
}

}  // namespace sparkle
