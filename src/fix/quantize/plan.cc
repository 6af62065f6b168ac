// Which layers become integers, and which tensors between them share a scale.
#include <algorithm>
#include <set>

#include "fix/quantize/bias.h"
#include "fix/proof/compare.h"
#include "fix/quantize/quantize.h"

namespace sparkle::fix {
namespace {

using ::onnx::NodeProto;

Dims shape_of(const std::map<std::string, TensorInfo>& tensors, const std::string& name) {
  const auto at = tensors.find(name);
  return at == tensors.end() ? Dims() : at->second.shape;
}

bool is_f32(const std::map<std::string, TensorInfo>& tensors, const std::string& name) {
  const auto at = tensors.find(name);
  return at != tensors.end() && at->second.dtype == DType::f32;
}

double macs_of(const NodeProto& node, const std::map<std::string, TensorInfo>& tensors) {
  const Dims x = shape_of(tensors, node.input(0)), w = shape_of(tensors, node.input(1)), y = shape_of(tensors, node.output(0));
  if (node.op_type() == "Conv" || node.op_type() == "ConvTranspose") {
    if (w.size() < 3 || w[0] == 0) return 0;
    const Dims& points = node.op_type() == "Conv" ? y : x;  // each meets as many weights
    return static_cast<double>(points.product()) * static_cast<double>(w.product()) / static_cast<double>(w[0]);
  }
  if (x.size() == 0 || y.size() == 0) return 0;
  const bool turned = node.op_type() == "Gemm" && int_attribute(node, "transA", 0) != 0;
  return static_cast<double>(y.product() * (turned ? x[0] : x[x.size() - 1]));
}

// Of the axis along which a product's input has its channels.
int channel_axis(const NodeProto& node) { return node.op_type() == "Conv" || node.op_type() == "ConvTranspose" ? 1 : -1; }

bool is_bound(const NodeProto& node) { return node.op_type() == "Relu" || node.op_type() == "Clip"; }

class Planner {
 public:
  Planner(const Document& doc, const std::map<std::string, TensorInfo>& tensors, const Ranges& ranges, const Layers& wide,
          const QuantizeOptions& options)
      : doc_(doc), tensors_(tensors), ranges_(ranges), wide_(wide), options_(options) {}

  QuantizePlan plan() {
    plan_.products = products_of(doc_, tensors_);
    for (auto& p : plan_.products) look_at(p);
    for (int n = 0; n < doc_.graph().node_size(); ++n) pass_on(doc_.graph().node(n));
    for (auto& p : plan_.products) {
      if (p.integer && !scaled(result_of(p.node))) p.integer = false, p.why = "its result is the model's, scores of classes";
    }
    for (const std::string& name : order_) settle(name);
    return std::move(plan_);
  }

 private:
  bool scaled(const std::string& name) const { return wanted_.contains(name); }
  void want(const std::string& name) {
    if (ranges_.contains(name) && wanted_.insert(name).second) order_.push_back(name), same_[name] = name;
  }
  std::string root(std::string name) {
    while (same_[name] != name) name = same_[name];
    return name;
  }

  // What a product gives, behind a bound that alone reads it.
  std::string result_of(int n) const {
    const std::string& y = doc_.graph().node(n).output(0);
    const auto& uses = doc_.uses(y);
    if (uses.size() == 1 && !doc_.is_output(y) && is_bound(doc_.graph().node(uses[0].node)))
      return doc_.graph().node(uses[0].node).output(0);
    // A bias that is added to a MatMul belongs to it.
    if (uses.size() == 1 && !doc_.is_output(y) && adds_bias(n, uses[0].node)) {
      const std::string& sum = doc_.graph().node(uses[0].node).output(0);
      const auto& behind = doc_.uses(sum);
      if (behind.size() == 1 && !doc_.is_output(sum) && is_bound(doc_.graph().node(behind[0].node)))
        return doc_.graph().node(behind[0].node).output(0);
      return sum;
    }
    return y;
  }

 public:
  bool adds_bias(int product, int n) const {
    const NodeProto& node = doc_.graph().node(n);
    if (doc_.graph().node(product).op_type() != "MatMul" || node.op_type() != "Add") return false;
    for (const std::string& name : node.input())
      if (doc_.is_constant(name)) {
        const Dims b = shape_of(tensors_, name), y = shape_of(tensors_, node.output(0));
        return b.size() == 1 && y.size() > 0 && b[0] == y.back();
      }
    return false;
  }

 private:
  void look_at(QuantizePlan::Product& p) {
    const NodeProto& node = doc_.graph().node(p.node);
    const std::string& type = node.op_type();
    if (wide_.contains(p.layer)) return void(p.why = "kept wide");
    if (type == "ConvTranspose") return void(p.why = "transposed convolutions have no integer form");
    if (!doc_.is_constant(input_of(node, 1)) || doc_.is_constant(node.input(0)))
      return void(p.why = "its operands both depend on the data");
    if (!is_f32(tensors_, node.input(0)) || !is_f32(tensors_, node.input(1))) return void(p.why = "it is not in f32");
    if (!input_of(node, 2).empty() && !doc_.is_constant(node.input(2))) return void(p.why = "its bias depends on the data");
    if (type == "Gemm") {
      const Dims bias = shape_of(tensors_, input_of(node, 2));
      const bool plain = float_attribute(node, "alpha", 1) == 1 && float_attribute(node, "beta", 1) == 1 &&
                         int_attribute(node, "transA", 0) == 0 &&
                         (input_of(node, 2).empty() || (bias.size() >= 1 && bias.product() == p.K));
      if (!plain) return void(p.why = "it is no plain product");
    }
    if (type == "MatMul" && shape_of(tensors_, node.input(1)).size() != 2) return void(p.why = "its weights are no matrix");
    if (!ranges_.contains(node.input(0))) return void(p.why = "nobody measured what it reads");
    p.integer = true;
    bytes_.insert(node.input(0));
    p.means = ranges_.at(node.input(0)).means;
    if (type == "Conv")
      p.shares = tap_shares(node, shape_of(tensors_, node.input(0)), shape_of(tensors_, node.input(1)),
                            shape_of(tensors_, node.output(0)));
    want(node.input(0));
    const std::string& result = p.result = result_of(p.node);
    if (!only_output(result) || !decides(result)) want(result);
  }

  // Scores of classes: in steps of a 255th of their range the first two may be the same.
  bool decides(const std::string& name) const { return is_classes(shape_of(tensors_, name)); }

  // Whether nothing but the model's caller reads it.
  bool only_output(const std::string& name) const { return doc_.uses(name).empty() || doc_.is_output(name); }

  // Tensors of operators that only move or compare elements have the scale of what they read.
  void pass_on(const NodeProto& node) {
    static const std::set<std::string> kMoves{"MaxPool", "Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze"};
    if (node.output_size() == 0 || doc_.is_output(node.output(0)) || !is_f32(tensors_, node.output(0))) return;
    const std::string& type = node.op_type();
    const bool concat = type == "Concat";
    if (kMoves.contains(type) || concat) {
      const int count = concat ? node.input_size() : 1;
      for (int i = 0; i < count; ++i)
        if (!scaled(node.input(i))) return;
      for (int o = 1; o < node.output_size(); ++o)
        if (!node.output(o).empty()) return;
      if (!ranges_.contains(node.output(0))) return;
      want(node.output(0));
      bytes_.insert(node.output(0));
      for (int i = 0; i < count; ++i) same_[root(node.input(i))] = root(node.output(0)), bytes_.insert(node.input(i));
    }
    if ((type == "Add" && scaled(node.input(0)) && scaled(node.input(1))) ||
        (type == "GlobalAveragePool" && scaled(node.input(0)))) {
      want_result(node);
      bytes_.insert(node.input().begin(), node.input().end());
    }
  }

  void want_result(const NodeProto& node) {
    std::string name = node.output(0);
    const auto& uses = doc_.uses(name);
    if (uses.size() == 1 && is_bound(doc_.graph().node(uses[0].node))) name = doc_.graph().node(uses[0].node).output(0);
    if (!only_output(name) && ranges_.contains(name)) want(name);
  }

  // What a convolution gives to readers of real numbers: no integer product, no sum and no move of bytes wants one scale of it.
  bool has_steps_by_channel(const std::string& name) const {
    const int made = doc_.producer(name);
    if (bytes_.contains(name) || made < 0) return false;
    const NodeProto& node = doc_.graph().node(made);
    const int product = node.op_type() == "Relu" ? doc_.producer(node.input(0)) : made;
    if (product < 0 || doc_.graph().node(product).op_type() != "Conv") return false;
    return ranges_.at(name).lows.size() > 1;
  }

  void settle(const std::string& name) {
    if (has_steps_by_channel(name)) {
      Range each = ranges_.at(name);
      if (options_.cut == Cut::percentile || options_.cut == Cut::entropy) {
        const Range whole = cut_range(each, options_.cut, options_.percentile);
        for (float& low : each.lows) low = std::max(low, whole.low);
        for (float& high : each.highs) high = std::min(high, whole.high);
      }
      ChannelSteps by = steps_of_channels(each, options_.cut, function_behind(doc_, name));
      by.rank = shape_of(tensors_, name).size();
      plan_.by_channel[name] = std::move(by);
      return;
    }
    const Range range = cut_range(ranges_.at(name), options_.cut, options_.percentile, function_behind(doc_, name));
    const auto [at, first] = numbers_.emplace(root(name), static_cast<int>(plan_.scales.size()));
    if (first) plan_.scales.push_back({});
    Range& whole = plan_.scales[static_cast<size_t>(at->second)];
    whole.low = std::min(whole.low, range.low);
    whole.high = std::max(whole.high, range.high);
    plan_.scaled[name] = at->second;
  }

  const Document& doc_;
  const std::map<std::string, TensorInfo>& tensors_;
  const Ranges& ranges_;
  const Layers& wide_;
  const QuantizeOptions& options_;
  QuantizePlan plan_;
  std::set<std::string> wanted_, bytes_;  // bytes_: read as such
  std::vector<std::string> order_;
  std::map<std::string, std::string> same_;
  std::map<std::string, int> numbers_;
};

}  // namespace

double QuantizePlan::share() const {
  double all = 0, integer = 0;
  for (const Product& p : products) all += p.macs, integer += p.integer ? p.macs : 0;
  return all > 0 ? integer / all : 0;
}

std::vector<QuantizePlan::Product> products_of(const Document& doc, const std::map<std::string, TensorInfo>& tensors) {
  std::vector<QuantizePlan::Product> products;
  for (int n = 0; n < doc.graph().node_size(); ++n) {
    const NodeProto& node = doc.graph().node(n);
    const std::string& type = node.op_type();
    if (!is_standard(node) || (type != "Conv" && type != "ConvTranspose" && type != "Gemm" && type != "MatMul")) continue;
    QuantizePlan::Product p{n, node.output(0), label_of(node, n), 0, 0, macs_of(node, tensors), false, "", "", {}, {}};
    p.axis = type == "Conv" || (type == "Gemm" && int_attribute(node, "transB", 0) != 0) ? 0 : 1;
    const Dims w = shape_of(tensors, node.input(1));
    p.K = w.size() > p.axis ? w[p.axis] : 0;
    products.push_back(std::move(p));
  }
  return products;
}

RangeOptions ranges_for(const Document& doc, const std::map<std::string, TensorInfo>& tensors, const QuantizeOptions& options) {
  RangeOptions wanted{options.cut != Cut::min_max, {}};
  for (const auto& p : products_of(doc, tensors)) {
    const NodeProto& node = doc.graph().node(p.node);
    wanted.channels.emplace(node.input(0), channel_axis(node));
    if (node.op_type() != "Conv") continue;
    wanted.channels.emplace(node.output(0), 1);
    for (const Use& use : doc.uses(node.output(0)))
      if (doc.graph().node(use.node).op_type() == "Relu") wanted.channels.emplace(doc.graph().node(use.node).output(0), 1);
  }
  return wanted;
}

QuantizePlan plan_quantization(const Document& doc, const std::map<std::string, TensorInfo>& tensors, const Ranges& ranges,
                               const Layers& wide, const QuantizeOptions& options) {
  return Planner(doc, tensors, ranges, wide, options).plan();
}

}  // namespace sparkle::fix
