// Integers put in: weights stored in 8 bits, biases in 32, pairs of QuantizeLinear and DequantizeLinear behind tensors.
#include <algorithm>
#include <cmath>

#include "fix/quantize/quantize.h"
#include "graph/evaluate/values.h"

namespace sparkle::fix {
namespace {

using ::onnx::NodeProto;

// value = (q - zero) * scale, q of u8; both ends and zero are among the values.
struct Step {
  float scale = 1;
  uint8_t zero = 0;
};

Step step_of(const Range& r) {
  const float low = std::min(r.low, 0.0f), high = std::max(r.high, 0.0f);
  Step s;
  s.scale = std::max((high - low) / 255, 1e-20f);
  s.zero = static_cast<uint8_t>(std::clamp(std::lround(-low / s.scale), 0l, 255l));
  return s;
}

class Quantizer {
 public:
  Quantizer(Document& doc, const QuantizePlan& plan) : doc_(doc), plan_(plan) {}

  void quantize() {
    for (const auto& p : plan_.products)
      if (p.integer) product(p);
    for (const auto& [name, scale] : plan_.scaled) tensor(name, step_of(plan_.scales[static_cast<size_t>(scale)]));
    (void)doc_.normalize();
    doc_.drop_dead();
  }

 private:
  NodeProto& node(int n) { return *doc_.graph().mutable_node(n); }

  std::string dequantize(const std::string& name, const HostTensor& values, const HostTensor& scales, int axis) {
    const std::string q = doc_.add_constant(name + "_quantized", values), s = doc_.add_constant(name + "_scale", scales),
                      y = doc_.fresh(name + "_dequantized");
    NodeProto& added = *doc_.graph().add_node();
    added.set_op_type("DequantizeLinear");
    added.set_name(doc_.fresh(y + "_node"));
    for (const std::string& input : {q, s}) added.add_input(input);
    if (values.dtype == DType::i8)
      added.add_input(doc_.add_constant(name + "_zero", HostTensor::zeros(DType::i8, scales.shape)));
    added.add_output(y);
    set_attribute(added, "axis", static_cast<int64_t>(axis));
    return y;
  }

  void product(const QuantizePlan::Product& p) {
    const Step x = step_of(plan_.scales[static_cast<size_t>(plan_.scaled.at(node(p.node).input(0)))]);
    const std::string name = node(p.node).input(1);
    const HostTensor w = *doc_.constant(name);
    int bias_node = p.node, bias_input = 2;
    std::optional<HostTensor> bias = doc_.constant(input_of(node(p.node), 2));
    if (node(p.node).op_type() == "MatMul") find_bias(p, bias_node, bias_input, bias);
    // A scale per channel: the largest weight is 127, and the bias fits 31 bits.
    int64_t inner = 1;
    for (int a = p.axis + 1; a < w.shape.size(); ++a) inner *= w.shape[a];
    std::vector<float> most(static_cast<size_t>(p.K), 0.0f);
    const auto channel = [&](int64_t i) { return static_cast<size_t>(i / inner % p.K); };
    for (int64_t i = 0; i < w.elements(); ++i) most[channel(i)] = std::max(most[channel(i)], std::abs(w.data<float>()[i]));
    HostTensor scales = HostTensor::zeros(DType::f32, {p.K}), quantized = HostTensor::zeros(DType::i8, w.shape);
    for (int64_t k = 0; k < p.K; ++k) {
      float scale = std::max(most[static_cast<size_t>(k)] / 127, 1e-12f);
      if (bias) scale = std::max(scale, std::abs(bias->data<float>()[k]) / x.scale / 1e9f);
      scales.data<float>()[k] = scale;
    }
    for (int64_t i = 0; i < w.elements(); ++i)
      quantized.data<int8_t>()[i] =
          static_cast<int8_t>(std::clamp(std::lround(w.data<float>()[i] / scales.data<float>()[channel(i)]), -127l, 127l));
    node(p.node).set_input(1, dequantize(name, quantized, scales, p.axis));
    if (!bias) return;
    HostTensor bias_scales = HostTensor::zeros(DType::f32, {p.K}), sums = HostTensor::zeros(DType::i32, {p.K});
    for (int64_t k = 0; k < p.K; ++k) {
      bias_scales.data<float>()[k] = x.scale * scales.data<float>()[k];
      sums.data<int32_t>()[k] = static_cast<int32_t>(
          std::llround(static_cast<double>(bias->data<float>()[k]) / static_cast<double>(bias_scales.data<float>()[k])));
    }
    node(bias_node).set_input(bias_input, dequantize(node(bias_node).input(bias_input), sums, bias_scales, 0));
  }

  void find_bias(const QuantizePlan::Product& p, int& bias_node, int& bias_input, std::optional<HostTensor>& bias) {
    const auto& uses = doc_.uses(p.layer);
    if (uses.size() != 1 || doc_.is_output(p.layer) || node(uses[0].node).op_type() != "Add") return;
    for (int i = 0; i < 2; ++i)
      if (const auto value = doc_.constant(node(uses[0].node).input(i));
          value && value->shape == Dims{p.K} && value->dtype == DType::f32)
        bias_node = uses[0].node, bias_input = i, bias = value;
  }

  // All who read the tensor read it through 8 bits: what makes it is a layer in integers only then.
  void tensor(const std::string& name, const Step& step) {
    const std::string scale =
                          doc_.add_constant(name + "_scale", HostTensor::of(DType::f32, {}, std::vector<float>{step.scale})),
                      zero = doc_.add_constant(name + "_zero", HostTensor::of(DType::u8, {}, std::vector<uint8_t>{step.zero})),
                      q = doc_.fresh(name + "_quantized"), y = doc_.fresh(name + "_dequantized");
    for (const Use& use : doc_.uses(name)) node(use.node).set_input(use.input, y);
    for (const bool first : {true, false}) {
      NodeProto& added = *doc_.graph().add_node();
      added.set_op_type(first ? "QuantizeLinear" : "DequantizeLinear");
      added.set_name(doc_.fresh((first ? q : y) + "_node"));
      for (const std::string& input : {first ? name : q, scale, zero}) added.add_input(input);
      added.add_output(first ? q : y);
    }
  }

  Document& doc_;
  const QuantizePlan& plan_;
};

}  // namespace

Status apply_quantization(Document& doc, const QuantizePlan& plan) {
  Quantizer(doc, plan).quantize();
  return ok();
}

}  // namespace sparkle::fix
