// A plan of padding carried out: constants grow, attributes follow, Pad and Slice stand at the borders.
#include <algorithm>
#include <cstring>

#include "base/half_floats.h"
#include "fix/pad/plan.h"

namespace sparkle::fix {
namespace {

// One element of the type that holds the value 0 or 1.
std::vector<std::byte> element_of(DType type, double value) {
  std::vector<std::byte> bytes(static_cast<size_t>(size_of(type)));
  const auto put = [&](auto v) { std::memcpy(bytes.data(), &v, sizeof v); };
  switch (type) {
    case DType::f32: put(static_cast<float>(value)); break;
    case DType::f64: put(value); break;
    case DType::f16: put(double_to_half(value)); break;
    case DType::bf16: put(float_to_bfloat16(static_cast<float>(value))); break;
    case DType::i64: put(static_cast<int64_t>(value)); break;
    case DType::i32: put(static_cast<int32_t>(value)); break;
    default: bytes[0] = static_cast<std::byte>(value != 0); break;
  }
  return bytes;
}

HostTensor grown(const HostTensor& from, int axis, const AxisMap& map, double fill) {
  Dims shape = from.shape;
  shape[axis] = map.new_size;
  HostTensor to = HostTensor::zeros(from.dtype, shape);
  const int64_t size = size_of(from.dtype);
  if (fill != 0) {
    const auto element = element_of(from.dtype, fill);
    for (int64_t i = 0; i < to.elements(); ++i) std::memcpy(to.bytes.get() + i * size, element.data(), element.size());
  }
  int64_t outer = 1, inner = size;
  for (int a = 0; a < axis; ++a) outer *= from.shape[a];
  for (int a = axis + 1; a < from.shape.size(); ++a) inner *= from.shape[a];
  for (int64_t o = 0; o < outer; ++o)
    for (const auto& part : map.parts)
      std::memcpy(to.bytes.get() + (o * map.new_size + part.to) * inner,
                  from.bytes.get() + (o * map.old_size + part.from) * inner, static_cast<size_t>(part.size * inner));
  return to;
}

class Painter {
 public:
  Painter(Document& doc, const PadPlan& plan, const std::map<std::string, TensorInfo>& tensors)
      : doc_(doc), plan_(plan), tensors_(tensors) {}

  Status paint() {
    SPARKLE_CHECK(constants());
    for (const auto& e : plan_.groups)
      if (grows(e.runs)) set_attribute(node(e.node), "group", plan_.channels.grown(e.runs));
    for (const auto& e : plan_.splits) split(e);
    for (const auto& e : plan_.slices) slice(e);
    for (const auto& e : plan_.pads) pad(e);
    for (const auto& e : plan_.sizes) size(e);
    for (const auto& b : plan_.entries)
      if (grows(b.runs)) enter(b);
    for (const auto& b : plan_.exits)
      if (grows(b.runs)) leave(b);
    finish();
    return ok();
  }

 private:
  ::onnx::NodeProto& node(int n) { return *doc_.graph().mutable_node(n); }
  bool grows(const Runs& runs) const { return !plan_.channels.map(runs).identity(); }
  HostTensor list_of(const std::vector<int64_t>& values) const {
    return HostTensor::of(DType::i64, {static_cast<int64_t>(values.size())}, values);
  }

  // The input becomes this constant: under its own name where nobody else reads the old one.
  void put(int n, int input, const HostTensor& value) {
    const std::string name = node(n).input(input);
    const auto& uses = doc_.uses(name);
    const bool alone = std::all_of(uses.begin(), uses.end(), [&](const Use& u) { return u.node == n && u.input == input; });
    if (alone && !doc_.is_output(name)) doc_.set_constant(name, value);
    else node(n).set_input(input, doc_.add_constant(name + "_padded", value));
  }

  Status constants() {
    std::map<std::string, std::string> made;  // by name and what is asked of it, so that shared weights stay shared
    std::map<std::pair<int, int>, std::vector<const PadPlan::ConstantEdit*>> wanted;
    for (const auto& e : plan_.constants)
      if (grows(e.runs)) wanted[{e.node, e.input}].push_back(&e);
    std::map<std::string, std::vector<std::pair<std::pair<int, int>, std::string>>> by_name;
    for (const auto& [where, edits] : wanted) {
      std::string key;
      for (const auto* e : edits) {
        key += "|" + std::to_string(e->axis) + ":" + std::to_string(e->fill);
        for (const auto& part : plan_.channels.map(e->runs).parts)
          key += "," + std::to_string(part.from) + "," + std::to_string(part.to) + "," + std::to_string(part.size);
        key += "=" + std::to_string(plan_.channels.grown(e->runs));
      }
      by_name[node(where.first).input(where.second)].push_back({where, key});
    }
    for (const auto& [name, places] : by_name) {
      const auto value = doc_.constant(name);
      bool all_alike = !doc_.is_output(name) && doc_.uses(name).size() == places.size();
      for (const auto& place : places) all_alike = all_alike && place.second == places[0].second;
      std::map<std::string, std::string> names;
      for (const auto& [where, key] : places) {
        const auto at = names.find(key);
        if (at == names.end()) {
          HostTensor now = *value;
          for (const auto* e : wanted[where]) {
            const AxisMap map = plan_.channels.map(e->runs);
            if (e->axis >= now.shape.size() || now.shape[e->axis] != map.old_size)
              return Error{Reason::bad_model, "'" + doc_.name() + "': tensor '" + name + "' has the shape " +
                                                  now.shape.to_string() + ", which does not fit what node '" +
                                                  label_of(node(where.first), where.first) + "' computes."};
            now = grown(now, e->axis, map, e->fill);
          }
          if (all_alike) doc_.set_constant(name, now), names[key] = name;
          else names[key] = doc_.add_constant(name + "_padded", now);
        }
        node(where.first).set_input(where.second, names[key]);
      }
    }
    doc_.index();
    return ok();
  }

  void split(const PadPlan::SplitEdit& e) {
    if (std::none_of(e.parts.begin(), e.parts.end(), [&](const Runs& r) { return grows(r); })) return;
    std::vector<int64_t> sizes;
    for (const Runs& part : e.parts) sizes.push_back(plan_.channels.grown(part));
    drop_attribute(node(e.node), "num_outputs");
    if (doc_.opset() < 13) return set_attribute(node(e.node), "split", sizes);
    if (node(e.node).input_size() > 1 && !node(e.node).input(1).empty()) return put(e.node, 1, list_of(sizes));
    while (node(e.node).input_size() < 2) node(e.node).add_input("");
    node(e.node).set_input(1, doc_.add_constant(label_of(node(e.node), e.node) + "_sizes", list_of(sizes)));
  }

  void slice(const PadPlan::SliceEdit& e) {
    const int64_t begin = plan_.channels.grown(e.before), end = begin + plan_.channels.grown(e.inside);
    // Where the tensor grows elsewhere alone, an open end ("to the last one") would take in what follows.
    const auto whole = plan_.axes.find(node(e.node).input(0));
    if (whole == plan_.axes.end() || !grows(whole->second.runs)) return;
    bounds(e, begin, end);
  }

  void bounds(const PadPlan::SliceEdit& e, int64_t begin, int64_t end) {
    const auto entry = static_cast<size_t>(e.entry);
    if (doc_.opset() < 10) {
      auto starts = *ints_attribute(node(e.node), "starts"), ends = *ints_attribute(node(e.node), "ends");
      starts[entry] = begin, ends[entry] = end;
      set_attribute(node(e.node), "starts", starts);
      set_attribute(node(e.node), "ends", ends);
      return;
    }
    for (const auto& [input, bound] : {std::pair{1, begin}, {2, end}}) {
      HostTensor value = *doc_.constant(node(e.node).input(input));
      if (value.data<int64_t>()[entry] == bound) continue;
      value.data<int64_t>()[entry] = bound;
      put(e.node, input, value);
      doc_.index();
    }
  }

  void pad(const PadPlan::PadEdit& e) {
    if (!grows(e.begin) && !grows(e.end)) return;
    const bool by_attribute = doc_.opset() < 11;
    std::vector<int64_t> amounts;
    if (by_attribute) {
      amounts = *ints_attribute(node(e.node), "pads");
    } else {
      const HostTensor value = *doc_.constant(node(e.node).input(1));
      amounts.assign(value.data<int64_t>(), value.data<int64_t>() + value.elements());
    }
    amounts[static_cast<size_t>(e.axis)] = plan_.channels.grown(e.begin);
    amounts[static_cast<size_t>(e.axis + e.rank)] = plan_.channels.grown(e.end);
    if (by_attribute) set_attribute(node(e.node), "pads", amounts);
    else put(e.node, 1, list_of(amounts)), doc_.index();
  }

  // -1 and 0 follow by themselves: "the rest", "as before".
  void size(const PadPlan::SizeEdit& e) {
    if (!grows(e.runs)) return;
    HostTensor value = *doc_.constant(node(e.node).input(e.input));
    if (e.axis >= value.elements() || value.data<int64_t>()[e.axis] <= 0) return;
    std::vector<int64_t> sizes(value.data<int64_t>(), value.data<int64_t>() + value.elements());
    sizes[static_cast<size_t>(e.axis)] = plan_.channels.grown(e.runs);
    put(e.node, e.input, list_of(sizes));
    doc_.index();
  }

  ::onnx::NodeProto& add_node(const char* type, const std::string& name, const std::string& from, const std::string& to) {
    ::onnx::NodeProto& added = *doc_.graph().add_node();
    added.set_op_type(type);
    added.set_name(doc_.fresh(name));
    added.add_input(from);
    added.add_output(to);
    return added;
  }

  void enter(const PadPlan::Border& b) {
    const AxisMap map = plan_.channels.map(b.runs);
    const int rank = tensors_.at(b.tensor).shape.size();
    const std::string to = doc_.fresh(b.tensor + "_padded");
    for (const Use& use : b.uses) node(use.node).set_input(use.input, to);
    std::vector<int64_t> amounts(static_cast<size_t>(2 * rank));
    amounts[static_cast<size_t>(rank + b.axis)] = map.new_size - map.old_size;
    const std::string list = doc_.opset() < 11 ? "" : doc_.add_constant(to + "_amounts", list_of(amounts));
    ::onnx::NodeProto& added = add_node("Pad", to, b.tensor, to);
    if (list.empty()) set_attribute(added, "pads", amounts);
    else added.add_input(list);
  }

  void leave(const PadPlan::Border& b) {
    const AxisMap map = plan_.channels.map(b.runs);
    std::string from = b.tensor, to = b.tensor;
    if (b.output) {  // the model's name stays with what the model gives
      from = doc_.fresh(b.tensor + "_padded");
      ::onnx::NodeProto& producing = node(doc_.producer(b.tensor));
      for (std::string& name : *producing.mutable_output())
        if (name == b.tensor) name = from;
      for (const Use& use : doc_.uses(b.tensor)) node(use.node).set_input(use.input, from);
    } else {
      to = doc_.fresh(b.tensor + "_real");
    }
    for (const Use& use : b.uses) node(use.node).set_input(use.input, to);
    if (map.parts.size() != 1) {
      std::vector<int64_t> picked;
      for (const auto& part : map.parts)
        for (int64_t i = 0; i < part.size; ++i) picked.push_back(part.to + i);
      const std::string list = doc_.add_constant(to + "_channels", list_of(picked));
      ::onnx::NodeProto& added = add_node("Gather", to + "_slice", from, to);
      added.add_input(list);
      set_attribute(added, "axis", static_cast<int64_t>(b.axis));
      return;
    }
    const int64_t begin = map.parts[0].to, end = begin + map.parts[0].size;
    if (doc_.opset() < 10) {
      ::onnx::NodeProto& added = add_node("Slice", to + "_slice", from, to);
      set_attribute(added, "starts", std::vector<int64_t>{begin});
      set_attribute(added, "ends", std::vector<int64_t>{end});
      set_attribute(added, "axes", std::vector<int64_t>{b.axis});
      return;
    }
    const std::string starts = doc_.add_constant(to + "_from", list_of({begin})),
                      ends = doc_.add_constant(to + "_to", list_of({end})),
                      axes = doc_.add_constant(to + "_axes", list_of({b.axis}));
    ::onnx::NodeProto& added = add_node("Slice", to + "_slice", from, to);
    for (const std::string& name : {starts, ends, axes}) added.add_input(name);
  }

  // Nodes in order again; what the file says of shapes within follows.
  void finish() {
    google::protobuf::RepeatedPtrField<::onnx::ValueInfoProto> infos;
    for (auto& info : *doc_.graph().mutable_value_info()) {
      const auto at = plan_.axes.find(info.name());
      if (at == plan_.axes.end() || !grows(at->second.runs)) infos.Add(std::move(info));
    }
    doc_.graph().mutable_value_info()->Swap(&infos);
    (void)doc_.normalize();
    doc_.drop_dead();
  }

  Document& doc_;
  const PadPlan& plan_;
  const std::map<std::string, TensorInfo>& tensors_;
};

}  // namespace

Status apply_padding(Document& doc, const PadPlan& plan, const std::map<std::string, TensorInfo>& tensors) {
  if (plan.empty()) return ok();
  return Painter(doc, plan, tensors).paint();
}

}  // namespace sparkle::fix
