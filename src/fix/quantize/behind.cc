// Activations behind tensors that become 8-bit: where they are flat, values need no steps of their own.
#include <algorithm>
#include <cmath>

#include "fix/quantize/cut.h"

namespace sparkle::fix {
namespace {

using ::onnx::NodeProto;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// Of one node with one input.
Function function_of(const NodeProto& node) {
  const std::string& type = node.op_type();
  if (!is_standard(node)) return {};
  if (type == "Sigmoid") return sigmoid;
  if (type == "Tanh") return [](double x) { return std::tanh(x); };
  if (type == "Relu") return [](double x) { return std::max(x, 0.0); };
  if (type == "HardSwish") return [](double x) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); };
  if (type == "Softplus") return [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); };
  if (type == "Gelu") return [](double x) { return 0.5 * x * std::erfc(-x * M_SQRT1_2); };
  if (type == "HardSigmoid") {
    const double alpha = float_attribute(node, "alpha", 0.2), beta = float_attribute(node, "beta", 0.5);
    return [=](double x) { return std::clamp(alpha * x + beta, 0.0, 1.0); };
  }
  return {};
}

}  // namespace

Function function_behind(const Document& doc, const std::string& tensor) {
  if (doc.is_output(tensor)) return {};
  const auto& uses = doc.uses(tensor);
  const auto node = [&](size_t use) -> const NodeProto& { return doc.graph().node(uses[use].node); };
  if (uses.size() == 1) return function_of(node(0));
  if (uses.size() != 2) return {};
  // x * f(x), of which nothing else reads f(x).
  for (const size_t gate : {0u, 1u}) {
    const NodeProto &f = node(gate), &product = node(1 - gate);
    if (product.op_type() != "Mul" || f.op_type() == "Mul" || f.output_size() != 1) continue;
    const std::string& gated = f.output(0);
    const bool reads = product.input(0) == gated || product.input(1) == gated;
    if (!reads || doc.uses(gated).size() != 1 || doc.is_output(gated)) continue;
    if (const Function inner = function_of(f)) return [=](double x) { return x * inner(x); };
  }
  return {};
}

}  // namespace sparkle::fix
