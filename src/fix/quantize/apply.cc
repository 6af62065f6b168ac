// Integers put in: weights stored in 8 bits, biases in 32, pairs of QuantizeLinear and DequantizeLinear behind tensors.
#include <algorithm>
#include <cmath>

#include "fix/quantize/bias.h"
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
    for (const auto& [name, scale] : plan_.scaled) tensor(name, step_of(plan_.scales[static_cast<size_t>(scale)]), nullptr);
    for (const auto& [name, by] : plan_.by_channel) tensor(name, {by.largest(), by.zero}, &by);
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
    std::vector<float> rounded(static_cast<size_t>(w.elements()));
    for (int64_t i = 0; i < w.elements(); ++i) {
      const float scale = scales.data<float>()[channel(i)];
      const long q = std::clamp(std::lround(w.data<float>()[i] / scale), -127l, 127l);
      quantized.data<int8_t>()[i] = static_cast<int8_t>(q);
      rounded[static_cast<size_t>(i)] = static_cast<float>(q) * scale;
    }
    std::vector<float> parts(static_cast<size_t>(p.K), 1.0f);
    if (const auto by = plan_.by_channel.find(p.result); by != plan_.by_channel.end()) parts = by->second.parts();
    for (int64_t k = 0; k < p.K; ++k) scales.data<float>()[k] /= parts[static_cast<size_t>(k)];
    node(p.node).set_input(1, dequantize(name, quantized, scales, p.axis));
    const std::vector<double> shift = mean_shift(w, rounded, p.K, p.axis, p.means, p.shares);
    if (!bias) {
      // A product whose operator has no bias keeps its shift.
      const bool shifts = std::any_of(shift.begin(), shift.end(), [](double s) { return s != 0; });
      if (!shifts || node(p.node).op_type() == "MatMul") return;
      bias = HostTensor::zeros(DType::f32, {p.K});
      while (node(p.node).input_size() < 3) node(p.node).add_input("");
      node(p.node).set_input(2, doc_.fresh(name + "_bias"));
    }
    HostTensor bias_scales = HostTensor::zeros(DType::f32, {p.K}), sums = HostTensor::zeros(DType::i32, {p.K});
    for (int64_t k = 0; k < p.K; ++k) {
      const double step = static_cast<double>(x.scale) * static_cast<double>(scales.data<float>()[k]);
      const auto c = static_cast<size_t>(k);
      const double taken_back = (static_cast<double>(bias->data<float>()[k]) - shift[c]) / static_cast<double>(parts[c]);
      bias_scales.data<float>()[k] = static_cast<float>(step);
      sums.data<int32_t>()[k] =
          static_cast<int32_t>(std::clamp(std::round(taken_back / step), -double{INT32_MAX}, double{INT32_MAX}));
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

  // All who read the tensor read it through 8 bits: what makes it is a layer in integers only then. With `by` what makes it
  // gives each channel in parts of the largest step, so that one scale serves all, and behind it they are multiplied back:
  // other engines fail on QuantizeLinear with a scale per channel behind a convolution.
  void tensor(const std::string& name, const Step& step, const ChannelSteps* by) {
    const std::string scale =
                          doc_.add_constant(name + "_scale", HostTensor::of(DType::f32, {}, std::vector<float>{step.scale})),
                      zero = doc_.add_constant(name + "_zero", HostTensor::of(DType::u8, {}, std::vector<uint8_t>{step.zero})),
                      q = doc_.fresh(name + "_quantized"), y = doc_.fresh(name + "_dequantized");
    // The caller of the model keeps its name; what is made has another then.
    const std::string made = doc_.is_output(name) ? doc_.fresh(name + "_wide") : name;
    if (made != name) {
      for (std::string& output : *node(doc_.producer(name)).mutable_output())
        if (output == name) output = made;
    } else {
      for (const Use& use : doc_.uses(name)) node(use.node).set_input(use.input, y);
    }
    const std::string result = made != name ? name : y, steps = by ? doc_.fresh(name + "_steps") : result;
    const auto add = [&](const char* type, std::initializer_list<std::string> inputs, const std::string& output) {
      NodeProto& added = *doc_.graph().add_node();
      added.set_op_type(type);
      added.set_name(doc_.fresh(output + "_node"));
      for (const std::string& input : inputs) added.add_input(input);
      added.add_output(output);
    };
    add("QuantizeLinear", {made, scale, zero}, q);
    add("DequantizeLinear", {q, scale, zero}, steps);
    if (!by) return;
    Dims shape = Dims::filled(by->rank - 1, 1);
    shape[0] = static_cast<int64_t>(by->steps.size());
    const std::string parts = doc_.add_constant(name + "_parts", HostTensor::of(DType::f32, shape, by->parts()));
    add("Mul", {steps, parts}, result);
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
