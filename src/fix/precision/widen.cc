#include "fix/precision/widen.h"

#include "graph/evaluate/values.h"
#include "onnx/tensor_proto.h"

namespace sparkle::fix {
namespace {

bool is_16_bits(DType type) { return type == DType::f16 || type == DType::bf16; }

void add_cast(Document& doc, const std::string& from, const std::string& to, DType type) {
  ::onnx::NodeProto& node = *doc.graph().add_node();
  node.set_op_type("Cast");
  node.set_name(doc.fresh(to + "_cast"));
  node.add_input(from);
  node.add_output(to);
  set_attribute(node, "to", static_cast<int64_t>(onnx_type_of(type)));
}

}  // namespace

bool has_narrow_products(const Document& doc, const std::map<std::string, TensorInfo>& tensors) {
  for (const auto& node : doc.graph().node()) {
    if (node.op_type() != "Conv" && node.op_type() != "Gemm" && node.op_type() != "MatMul" && node.op_type() != "ConvTranspose")
      continue;
    const auto at = tensors.find(node.input(0));
    if (at != tensors.end() && is_16_bits(at->second.dtype)) return true;
  }
  return false;
}

void make_wide(Document& doc, const std::map<std::string, TensorInfo>& tensors) {
  auto& g = doc.graph();
  for (const auto& proto : std::vector<::onnx::TensorProto>(g.initializer().begin(), g.initializer().end())) {
    const auto value = doc.constant(proto.name());
    if (!value || !is_16_bits(value->dtype) || doc.is_output(proto.name())) continue;
    HostTensor wide = HostTensor::zeros(DType::f32, value->shape);
    const auto values = as_doubles(*value);
    for (size_t i = 0; i < values.size(); ++i) wide.data<float>()[i] = static_cast<float>(values[i]);
    doc.set_constant(proto.name(), wide);
  }
  for (auto& node : *g.mutable_node())
    if (const auto to = dtype_from_onnx(static_cast<int>(int_attribute(node, "to", 0)));
        node.op_type() == "Cast" && to && is_16_bits(*to))
      set_attribute(node, "to", static_cast<int64_t>(onnx_type_of(DType::f32)));
  const auto rename = [&](const std::string& from, const std::string& to, bool inputs, bool outputs) {
    for (auto& node : *g.mutable_node()) {
      for (std::string& name : *node.mutable_input())
        if (inputs && name == from) name = to;
      for (std::string& name : *node.mutable_output())
        if (outputs && name == from) name = to;
    }
  };
  const auto type_of = [&](const std::string& name) {
    const auto at = tensors.find(name);
    return at == tensors.end() ? DType::f32 : at->second.dtype;
  };
  for (const auto& info : g.input()) {
    if (!is_16_bits(type_of(info.name()))) continue;
    const std::string within = doc.fresh(info.name() + "_f32");
    rename(info.name(), within, true, false);
    add_cast(doc, info.name(), within, DType::f32);
  }
  for (const auto& info : g.output()) {
    if (!is_16_bits(type_of(info.name())) || doc.producer(info.name()) < 0) continue;
    const std::string within = doc.fresh(info.name() + "_f32");
    rename(info.name(), within, true, true);
    add_cast(doc, within, info.name(), type_of(info.name()));
  }
  g.clear_value_info();
  (void)doc.normalize();
  doc.drop_dead();
}

}  // namespace sparkle::fix
