#include "fix/precision/narrow.h"

#include <algorithm>
#include <cmath>

#include "base/half_floats.h"
#include "fix/rewrites/raise_opset.h"
#include "onnx/tensor_proto.h"

namespace sparkle::fix {
namespace {

using ::onnx::NodeProto;

constexpr float kLargestHalf = 65504, kSpare = 2;
constexpr int64_t kConvolutionsInBfloats = 22;

// Without a form in 16 bits, or with results whose type the node itself says.
bool has_no_narrow_form(const NodeProto& node, DType to) {
  static const std::set<std::string> kNone{"NonMaxSuppression",
                                           "QuantizeLinear",
                                           "DequantizeLinear",
                                           "DynamicQuantizeLinear",
                                           "Cast",
                                           "CastLike",
                                           "ConstantOfShape",
                                           "Range",
                                           "EyeLike",
                                           "Constant",
                                           "Loop",
                                           "If",
                                           "Scan"};
  static const std::set<std::string> kNoBfloats{"Einsum",         "TopK", "CumSum", "Gelu", "DeformConv", "GroupNormalization",
                                                "ReverseSequence"};
  return !is_standard(node) || kNone.contains(node.op_type()) || (to == DType::bf16 && kNoBfloats.contains(node.op_type()));
}

// Inputs that are f32 whatever the data is: factors and regions of Resize.
bool stays_f32(const NodeProto& node, int input) {
  return input > 0 && (node.op_type() == "Resize" || node.op_type() == "Upsample");
}

HostTensor narrowed(const HostTensor& t, DType to, bool bounds) {
  HostTensor y = HostTensor::zeros(to, t.shape);
  for (int64_t i = 0; i < t.elements(); ++i) {
    float v = t.data<float>()[i];
    if (bounds && to == DType::f16) v = std::clamp(v, -kLargestHalf, kLargestHalf);
    y.data<uint16_t>()[i] = to == DType::f16 ? float_to_half(v) : float_to_bfloat16(v);
  }
  return y;
}

bool is_f32(const std::map<std::string, TensorInfo>& tensors, const std::string& name) {
  const auto at = tensors.find(name);
  return at != tensors.end() && at->second.dtype == DType::f32;
}

HostTensor rounded_values(const HostTensor& t, DType to, bool bounds) {
  const HostTensor narrow = narrowed(t, to, bounds);
  HostTensor y = HostTensor::zeros(DType::f32, t.shape);
  for (int64_t i = 0; i < t.elements(); ++i) {
    const uint16_t bits = narrow.data<uint16_t>()[i];
    y.data<float>()[i] = to == DType::f16 ? half_to_float(bits) : bfloat16_to_float(bits);
  }
  return y;
}

std::string sized(float value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", static_cast<double>(value));
  return text;
}

class Narrower {
 public:
  Narrower(Document& doc, DType to, const Layers& wide, const std::map<std::string, TensorInfo>& tensors)
      : doc_(doc), to_(to), wide_(wide), tensors_(tensors), suffix_(to == DType::f16 ? "_f16" : "_bf16") {}

  void narrow() {
    auto& g = doc_.graph();
    const int count = g.node_size();
    for (int n = 0; n < count; ++n) {
      const NodeProto& node = g.node(n);
      const bool narrow = is_narrow(node);
      for (const std::string& name : node.output())
        if (narrow && is_float(name)) narrow_.insert(name);
    }
    for (int n = 0; n < count; ++n) {
      const bool narrow = is_narrow(g.node(n));
      for (int i = 0; i < g.node(n).input_size(); ++i) {
        const std::string name = g.node(n).input(i);
        if (name.empty() || !is_float(name)) continue;
        const bool want = narrow && !stays_f32(g.node(n), i);
        if (doc_.is_constant(name)) {
          if (want) g.mutable_node(n)->set_input(i, constant(name, g.node(n).op_type() == "Clip"));
        } else if (want != narrow_.contains(name)) {
          g.mutable_node(n)->set_input(i, cast(name, want ? to_ : DType::f32));
        }
      }
    }
    outputs();
    for (auto& info : *g.mutable_value_info())
      if (narrow_.contains(info.name())) info.mutable_type()->mutable_tensor_type()->set_elem_type(onnx_type_of(to_));
    (void)doc_.normalize();
    doc_.drop_dead();
  }

 private:
  bool is_float(const std::string& name) const { return is_f32(tensors_, name); }
  bool is_narrow(const NodeProto& node) const {
    return node.output_size() > 0 && !has_no_narrow_form(node, to_) && !wide_.contains(node.output(0));
  }

  std::string constant(const std::string& name, bool bounds) {
    const auto at = made_.find(name);
    if (at != made_.end()) return at->second;
    const HostTensor value = narrowed(*doc_.constant(name), to_, bounds);
    bool all = !doc_.is_output(name);
    for (const Use& use : doc_.uses(name)) {
      const NodeProto& node = doc_.graph().node(use.node);
      all = all && is_narrow(node) && !stays_f32(node, use.input);
    }
    if (all) doc_.set_constant(name, value);
    return made_[name] = all ? name : doc_.add_constant(name + suffix_, value);
  }

  NodeProto& add_cast(const std::string& from, const std::string& to, DType type) {
    NodeProto& node = *doc_.graph().add_node();
    node.set_op_type("Cast");
    node.set_name(doc_.fresh(to + "_cast"));
    node.add_input(from);
    node.add_output(to);
    set_attribute(node, "to", static_cast<int64_t>(onnx_type_of(type)));
    return node;
  }

  std::string cast(const std::string& name, DType type) {
    const auto at = made_.find(name);
    if (at != made_.end()) return at->second;
    const std::string to = doc_.fresh(name + (type == DType::f32 ? "_f32" : suffix_));
    add_cast(name, to, type);
    return made_[name] = to;
  }

  // The model's outputs keep name and type.
  void outputs() {
    for (const auto& info : doc_.graph().output()) {
      const std::string name = info.name();
      if (!narrow_.contains(name)) continue;
      const std::string within = doc_.fresh(name + suffix_);
      for (auto& node : *doc_.graph().mutable_node()) {
        for (std::string& input : *node.mutable_input())
          if (input == name) input = within;
        for (std::string& output : *node.mutable_output())
          if (output == name) output = within;
      }
      add_cast(within, name, DType::f32);
    }
  }

  Document& doc_;
  const DType to_;
  const Layers& wide_;
  const std::map<std::string, TensorInfo>& tensors_;
  const std::string suffix_;
  std::set<std::string> narrow_;
  std::map<std::string, std::string> made_;
};

}  // namespace

std::map<std::string, std::string> must_stay_wide(const Document& doc, DType to, const Ranges& ranges) {
  std::map<std::string, std::string> found;
  for (const NodeProto& node : doc.graph().node()) {
    if (node.output_size() == 0 || has_no_narrow_form(node, to) || to != DType::f16) continue;
    std::string why;
    const auto look = [&](const std::string& name) {
      const auto at = ranges.find(name);
      if (at != ranges.end() && at->second.largest() > kLargestHalf / kSpare)
        why = "'" + name + "' reaches " + sized(at->second.largest()) + ", fp16 ends at 65504";
    };
    for (const std::string& name : node.output()) look(name);
    for (const std::string& name : node.input()) {
      look(name);
      if (node.op_type() == "Clip" || name.empty()) continue;
      const auto value = doc.is_constant(name) ? doc.constant(name) : std::nullopt;
      if (!value || value->dtype != DType::f32) continue;
      for (int64_t i = 0; i < value->elements(); ++i)
        if (std::abs(value->data<float>()[i]) > kLargestHalf) why = "the constant '" + name + "' is beyond fp16";
    }
    if (!why.empty()) found[node.output(0)] = why;
  }
  return found;
}

Status make_narrow(Document& doc, DType to, const Layers& wide, const std::map<std::string, TensorInfo>& tensors) {
  std::map<std::string, TensorInfo> known = tensors;
  if (to == DType::bf16) {
    SPARKLE_CHECK(raise_opset(doc, kConvolutionsInBfloats, tensors));
    for (const auto& proto : doc.graph().initializer())  // what became inputs
      if (const auto type = dtype_from_onnx(proto.data_type())) known.emplace(proto.name(), TensorInfo{*type, {}});
  }
  Narrower(doc, to, wide, known).narrow();
  return ok();
}

Document rounded(Document doc, DType to, const Layers& wide, const std::map<std::string, TensorInfo>& tensors) {
  auto& g = doc.graph();
  std::map<std::string, std::string> made;
  // `name` by way of the narrow type, as a tensor called `result`.
  const auto through = [&](const std::string& name, const std::string& result) {
    const std::string narrow = doc.fresh(result + "_narrow");
    for (const bool down : {true, false}) {
      NodeProto& node = *g.add_node();
      node.set_op_type("Cast");
      node.set_name(doc.fresh(result + (down ? "_down" : "_up")));
      node.add_input(down ? name : narrow);
      node.add_output(down ? narrow : result);
      set_attribute(node, "to", static_cast<int64_t>(onnx_type_of(down ? to : DType::f32)));
    }
    return result;
  };
  const int count = g.node_size();
  for (int n = 0; n < count; ++n) {
    if (g.node(n).output_size() == 0 || has_no_narrow_form(g.node(n), to) || wide.contains(g.node(n).output(0))) continue;
    for (int i = 0; i < g.node(n).input_size(); ++i) {
      const std::string name = g.node(n).input(i);
      if (name.empty() || !is_f32(tensors, name) || stays_f32(g.node(n), i)) continue;
      const bool constant = doc.is_constant(name);
      if (!constant && doc.producer(name) >= 0 && doc.producer(name) < count) {
        const NodeProto& by = g.node(doc.producer(name));
        if (!has_no_narrow_form(by, to) && !wide.contains(by.output(0))) continue;  // rounded where it is made
      }
      std::string& again = made[name];
      if (again.empty())
        again = constant ? doc.add_constant(name + "_rounded",
                                            rounded_values(*doc.constant(name), to, g.node(n).op_type() == "Clip"))
                         : through(name, doc.fresh(name + "_rounded"));
      g.mutable_node(n)->set_input(i, again);
    }
    for (std::string& name : *g.mutable_node(n)->mutable_output()) {
      if (name.empty() || !is_f32(tensors, name)) continue;
      const std::string exact = doc.fresh(name + "_exact");
      through(exact, name);
      name = exact;
    }
  }
  (void)doc.normalize();
  doc.drop_dead();
  return doc;
}

}  // namespace sparkle::fix
