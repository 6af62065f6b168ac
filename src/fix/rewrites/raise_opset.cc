#include "fix/rewrites/raise_opset.h"

#include <algorithm>
#include <cmath>

#include "base/half_floats.h"

namespace sparkle::fix {
namespace {

using ::onnx::NodeProto;

HostTensor list_of(const std::vector<int64_t>& values) {
  return HostTensor::of(DType::i64, {static_cast<int64_t>(values.size())}, values);
}

HostTensor scalar_of(DType type, double value) {
  HostTensor t = HostTensor::zeros(type, {});
  if (type == DType::f16) *t.data<uint16_t>() = double_to_half(value);
  else if (type == DType::bf16) *t.data<uint16_t>() = float_to_bfloat16(static_cast<float>(value));
  else if (type == DType::f64) *t.data<double>() = value;
  else *t.data<float>() = static_cast<float>(value);
  return t;
}

class Raiser {
 public:
  Raiser(Document& doc, int64_t to, const std::map<std::string, TensorInfo>& tensors)
      : doc_(doc), from_(doc.opset()), to_(to), tensors_(tensors) {}

  Status raise() {
    for (n_ = 0; n_ < doc_.graph().node_size(); ++n_) {
      NodeProto& node = *doc_.graph().mutable_node(n_);
      if (is_standard(node)) SPARKLE_CHECK(raise(node));
    }
    doc_.set_opset(to_);
    doc_.index();
    return ok();
  }

 private:
  bool crosses(int64_t opset) const { return from_ < opset && to_ >= opset; }
  Error cannot(const NodeProto& node, const std::string& why) const {
    return {Reason::operator_not_served, "'" + doc_.name() + "': node '" + label_of(node, n_) + "' (" + node.op_type() +
                                             ") cannot be raised from opset " + std::to_string(from_) + " to " +
                                             std::to_string(to_) + ": " + why + "."};
  }
  TensorInfo info(const std::string& tensor) const {
    const auto at = tensors_.find(tensor);
    return at == tensors_.end() ? TensorInfo() : at->second;
  }
  void set_input(NodeProto& node, int input, const std::string& name) {
    while (node.input_size() <= input) node.add_input("");
    node.set_input(input, name);
  }
  // An attribute of integers becomes an input.
  void move(NodeProto& node, const char* name, int input) {
    const auto values = ints_attribute(node, name);
    if (!values) return;
    drop_attribute(node, name);
    set_input(node, input, doc_.add_constant(label_of(node, n_) + "_" + name, list_of(*values)));
  }

  Status raise(NodeProto& node) {
    const std::string type = node.op_type();
    if (from_ < 7) return cannot(node, "opsets before 7 repeat operands by rules of their own");
    drop_attribute(node, "consumed_inputs");
    if (type == "Dropout" && crosses(12)) {
      if (node.output_size() > 1) {
        if (doc_.is_output(node.output(1)) || !doc_.uses(node.output(1)).empty()) return cannot(node, "its mask is asked for");
        node.mutable_output()->DeleteSubrange(1, 1);
      }
      node.set_op_type("Identity");
      node.clear_attribute();
    }
    if (type == "BatchNormalization" && crosses(9)) {
      if (int_attribute(node, "spatial", 1) == 0) return cannot(node, "it has a mean for each element (spatial = 0)");
      drop_attribute(node, "spatial");
    }
    if (type == "Clip" && crosses(11)) clip(node);
    if (type == "Pad" && crosses(11)) {
      const double value = float_attribute(node, "value", 0);
      move(node, "pads", 1);
      drop_attribute(node, "value");
      if (value != 0)
        set_input(node, 2, doc_.add_constant(label_of(node, n_) + "_value", scalar_of(info(node.input(0)).dtype, value)));
    }
    if (type == "Slice" && crosses(10)) {
      move(node, "starts", 1);
      move(node, "ends", 2);
      move(node, "axes", 3);
    }
    if ((type == "Squeeze" || type == "Unsqueeze" || type == "ReduceSum") && crosses(13)) move(node, "axes", 1);
    if (type.starts_with("Reduce") && type != "ReduceSum" && crosses(18)) move(node, "axes", 1);
    if (type == "Split" && crosses(13)) move(node, "split", 1);
    if (type == "Split" && crosses(18) && input_of(node, 1).empty())
      set_attribute(node, "num_outputs", static_cast<int64_t>(node.output_size()));
    if ((type == "Softmax" || type == "LogSoftmax" || type == "Hardmax") && crosses(13)) SPARKLE_CHECK(softmax(node));
    if (type == "Upsample" && crosses(10)) upsample(node);
    if (type == "Resize" && crosses(11)) {
      const std::string scales = node.input(1);
      node.set_input(1, "");
      node.add_input(scales);
      by_corners(node);
    }
    if (type == "TopK" && crosses(10)) {
      const int64_t k = int_attribute(node, "k", 1);
      drop_attribute(node, "k");
      set_input(node, 1, doc_.add_constant(label_of(node, n_) + "_k", list_of({k})));
    }
    if (type == "Scatter" && crosses(11)) node.set_op_type("ScatterElements");
    if (type == "GroupNormalization" && crosses(21)) return cannot(node, "its scale is one per group");
    return ok();
  }

  void clip(NodeProto& node) {
    const DType dtype = info(node.input(0)).dtype;
    int input = 1;
    for (const char* name : {"min", "max"}) {
      if (const auto* bound = attribute(node, name)) {
        const auto value = static_cast<double>(bound->f());
        drop_attribute(node, name);
        if (std::abs(value) < 3e38)
          set_input(node, input, doc_.add_constant(label_of(node, n_) + "_" + name, scalar_of(dtype, value)));
      }
      ++input;
    }
  }

  // Before opset 13 the sum ran over all axes from this one on: the same where the others of them have one element.
  Status softmax(NodeProto& node) {
    const Dims shape = info(node.input(0)).shape;
    int64_t axis = int_attribute(node, "axis", 1);
    if (axis < 0) axis += shape.size();
    int64_t summed = axis;
    for (int64_t a = axis + 1; a < shape.size(); ++a)
      if (shape[static_cast<int>(a)] != 1) {
        if (shape[static_cast<int>(summed)] != 1) return cannot(node, "it sums over several axes");
        summed = a;
      }
    set_attribute(node, "axis", summed);
    return ok();
  }

  void by_corners(NodeProto& node) {
    for (const auto& [name, value] : {std::pair{"coordinate_transformation_mode", "asymmetric"}, {"nearest_mode", "floor"}}) {
      auto& a = *node.add_attribute();
      a.set_name(name);
      a.set_type(::onnx::AttributeProto::STRING);
      a.set_s(value);
    }
  }

  void upsample(NodeProto& node) {
    std::string scales = input_of(node, 1);
    if (const auto* given = attribute(node, "scales")) {
      const std::vector<float> values(given->floats().begin(), given->floats().end());
      scales = doc_.add_constant(label_of(node, n_) + "_scales",
                                 HostTensor::of(DType::f32, {static_cast<int64_t>(values.size())}, values));
      drop_attribute(node, "scales");
    }
    node.set_op_type("Resize");
    set_input(node, 1, "");
    set_input(node, 2, scales);
    by_corners(node);
  }

  Document& doc_;
  const int64_t from_, to_;
  const std::map<std::string, TensorInfo>& tensors_;
  int n_ = 0;
};

}  // namespace

Status raise_opset(Document& doc, int64_t to, const std::map<std::string, TensorInfo>& tensors) {
  if (doc.opset() >= to) return ok();
  const int64_t ir = to >= 23 ? 11 : to >= 21 ? 10 : to >= 19 ? 9 : to >= 15 ? 8 : 7;
  SPARKLE_CHECK(Raiser(doc, to, tensors).raise());
  doc.model().set_ir_version(std::max<int64_t>(doc.model().ir_version(), ir));
  return ok();
}

}  // namespace sparkle::fix
