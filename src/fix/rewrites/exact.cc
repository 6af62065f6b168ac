#include "fix/rewrites/exact.h"

#include <algorithm>
#include <cmath>

#include "graph/evaluate/values.h"
#include "onnx/tensor_proto.h"

namespace sparkle::fix {
namespace {

constexpr int64_t kMostFolded = int64_t{16} << 20;

bool reads_constants_alone(const Document& doc, const ::onnx::NodeProto& node) {
  return std::all_of(node.input().begin(), node.input().end(),
                     [&](const std::string& name) { return name.empty() || doc.is_constant(name); });
}

// What the only reader of a tensor is; -1 where there are more or the model gives it.
int only_reader(const Document& doc, const std::string& tensor) {
  const auto& uses = doc.uses(tensor);
  return uses.size() == 1 && !doc.is_output(tensor) ? uses[0].node : -1;
}

// w[k] *= factor[k] along an axis.
HostTensor scaled(const HostTensor& w, int axis, const std::vector<double>& factor, int64_t groups) {
  HostTensor y = HostTensor::zeros(DType::f32, w.shape);
  const auto values = as_doubles(w);
  int64_t inner = 1;
  for (int a = axis + 1; a < w.shape.size(); ++a) inner *= w.shape[a];
  const int64_t K = w.shape[axis], C = axis == 0 ? 1 : w.shape[0];  // of ConvTranspose the groups lie in axis 0
  for (int64_t i = 0; i < y.elements(); ++i) {
    const int64_t k = i / inner % K, group = axis == 0 ? 0 : i / inner / K / (C / groups);
    y.data<float>()[i] = static_cast<float>(values[static_cast<size_t>(i)] * factor[static_cast<size_t>(group * K + k)]);
  }
  return y;
}

bool fold_into(Document& doc, int product, int norm) {
  auto& p = *doc.graph().mutable_node(product);
  auto& n = *doc.graph().mutable_node(norm);
  const std::string& type = p.op_type();
  const auto w = doc.constant(input_of(p, 1));
  if (!w || w->dtype != DType::f32 || (!input_of(p, 2).empty() && !doc.is_constant(input_of(p, 2)))) return false;
  if (doc.uses(p.input(1)).size() != 1 || doc.is_output(p.input(1))) return false;
  int axis = 0;
  if (type == "ConvTranspose") axis = 1;
  else if (type == "Gemm") axis = int_attribute(p, "transB", 0) != 0 ? 0 : 1;
  else if (type != "Conv") return false;
  if (type == "Gemm" && (float_attribute(p, "alpha", 1) != 1 || float_attribute(p, "beta", 1) != 1)) return false;
  const int64_t groups = type == "ConvTranspose" ? int_attribute(p, "group", 1) : 1, K = w->shape[axis] * groups;
  if (groups < 1 || w->shape[0] % groups != 0) return false;
  std::vector<double> given[4];
  for (int i = 0; i < 4; ++i) {
    const auto c = doc.constant(input_of(n, i + 1));
    if (!c || c->dtype != DType::f32 || c->elements() != K) return false;
    given[i] = as_doubles(*c);
  }
  const double epsilon = float_attribute(n, "epsilon", 1e-5);
  std::vector<double> factor(static_cast<size_t>(K)), bias(static_cast<size_t>(K), 0.0);
  if (const auto b = doc.constant(input_of(p, 2))) {
    if (b->dtype != DType::f32 || b->elements() != K) return false;
    bias = as_doubles(*b);
  }
  for (size_t k = 0; k < factor.size(); ++k) {
    factor[k] = given[0][k] / std::sqrt(given[3][k] + epsilon);
    bias[k] = bias[k] * factor[k] + (given[1][k] - factor[k] * given[2][k]);
  }
  if (!std::all_of(factor.begin(), factor.end(), [](double v) { return std::isfinite(v); })) return false;
  HostTensor b = HostTensor::zeros(DType::f32, {K});
  for (int64_t k = 0; k < K; ++k) b.data<float>()[k] = static_cast<float>(bias[static_cast<size_t>(k)]);
  doc.set_constant(p.input(1), type == "Gemm" && axis == 1 ? scaled(*w, 1, factor, 1) : scaled(*w, axis, factor, groups));
  while (p.input_size() < 3) p.add_input("");
  const bool own_bias = !p.input(2).empty() && doc.uses(p.input(2)).size() == 1 && !doc.is_output(p.input(2));
  if (own_bias) doc.set_constant(p.input(2), b);
  else p.set_input(2, doc.add_constant(p.input(1) + "_bias", b));
  p.set_output(0, n.output(0));
  n.Clear();
  return true;
}

void drop_cleared(Document& doc) {
  google::protobuf::RepeatedPtrField<::onnx::NodeProto> nodes;
  for (auto& node : *doc.graph().mutable_node())
    if (!node.op_type().empty()) nodes.Add(std::move(node));
  doc.graph().mutable_node()->Swap(&nodes);
  doc.drop_dead();
}

std::vector<int64_t> order_of(const ::onnx::NodeProto& node) {
  return ints_attribute(node, "perm").value_or(std::vector<int64_t>());
}

}  // namespace

std::vector<std::string> fold_constants(Document& doc, const std::map<std::string, HostTensor>& values) {
  std::vector<std::string> lines;
  int64_t bytes = 0;
  for (int n = 0; n < doc.graph().node_size(); ++n) {
    auto& node = *doc.graph().mutable_node(n);
    // Quantised weights stay as small as they are.
    if (node.op_type() == "DequantizeLinear" || !reads_constants_alone(doc, node) || node.output_size() == 0) continue;
    int64_t more = 0;
    const bool known = std::all_of(node.output().begin(), node.output().end(), [&](const std::string& name) {
      const auto at = values.find(name);
      if (at != values.end()) more += at->second.size_bytes();
      return name.empty() || (at != values.end() && !doc.is_output(name));
    });
    if (!known || bytes + more > kMostFolded) continue;
    bytes += more;
    lines.push_back(label_of(node, n) + ": a constant");
    const auto outputs = node.output();
    node.Clear();
    for (const std::string& name : outputs) {
      if (name.empty()) continue;
      ::onnx::TensorProto proto;
      put_tensor(values.at(name), name, proto);
      *doc.graph().add_initializer() = std::move(proto);
    }
    doc.index();
  }
  if (!lines.empty()) drop_cleared(doc);
  return lines;
}

std::vector<std::string> fold_batch_normalization(Document& doc) {
  std::vector<std::string> lines;
  for (int n = 0; n < doc.graph().node_size(); ++n) {
    const auto& node = doc.graph().node(n);
    if (node.op_type() != "BatchNormalization" || !is_standard(node) || int_attribute(node, "training_mode", 0) != 0) continue;
    bool one_output = true;
    for (int o = 1; o < node.output_size(); ++o) one_output = one_output && node.output(o).empty();
    const int product = doc.producer(node.input(0));
    if (product < 0 || !one_output || only_reader(doc, node.input(0)) != n) continue;
    const std::string line = label_of(node, n) + ": into " + label_of(doc.graph().node(product), product);
    if (!fold_into(doc, product, n)) continue;
    lines.push_back(line);
    doc.index();
  }
  if (!lines.empty()) drop_cleared(doc);
  return lines;
}

std::vector<std::string> merge_layouts(Document& doc) {
  std::vector<std::string> lines;
  for (int n = 0; n < doc.graph().node_size(); ++n) {
    auto& node = *doc.graph().mutable_node(n);
    if (node.op_type() != "Transpose" || !is_standard(node)) continue;
    const int before = doc.producer(node.input(0));
    if (before < 0) continue;
    auto& first = *doc.graph().mutable_node(before);
    if (first.op_type() != "Transpose" || !is_standard(first)) continue;
    const auto a = order_of(first), b = order_of(node);
    if (a.empty() || a.size() != b.size()) continue;
    std::vector<int64_t> both;
    for (int64_t axis : b) both.push_back(a[static_cast<size_t>(axis)]);
    lines.push_back(label_of(node, n) + ": with " + label_of(first, before));
    node.set_input(0, first.input(0));
    set_attribute(node, "perm", both);
    if (std::is_sorted(both.begin(), both.end())) {
      if (doc.is_output(node.output(0))) {
        node.set_op_type("Identity");
        drop_attribute(node, "perm");
      } else {
        const std::string from = first.input(0);
        for (const Use& use : doc.uses(node.output(0))) doc.graph().mutable_node(use.node)->set_input(use.input, from);
        node.Clear();
      }
    }
    doc.index();
  }
  if (!lines.empty()) drop_cleared(doc);
  return lines;
}

}  // namespace sparkle::fix
