// The oracle of the inverted family: the references of its parts, with the planes between them in double precision.
#include <vector>

#include "families/depthwise/depthwise.h"
#include "families/depthwise/depthwise_reference.h"
#include "families/gemm/gemm_family.h"
#include "families/inverted/inverted.h"
#include "families/inverted/inverted_family.h"

namespace sparkle {
namespace {

// A plane of doubles, channels last.
struct Plane {
  TensorDesc desc;
  std::vector<double> values;

  Plane(int64_t n, int64_t c, int64_t h, int64_t w)
      : desc{DType::f64, {n, c, h, w}, channels_last({n, c, h, w})}, values(static_cast<size_t>(n * c * h * w)) {}
  TensorView view() { return {reinterpret_cast<std::byte*>(values.data()), desc}; }
};

void pointwise_part(const Epilogue& epilogue, std::span<const TensorView> inputs, const TensorView& y) {
  GemmParams params;
  params.epilogue = epilogue;
  gemm_reference(params, inputs, {&y, 1});
}

}  // namespace

void inverted_reference(const StageParams& params, std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
  const auto& p = get<InvertedParams>(params);
  const InvertedOperands at = inverted_operands(p);
  const auto operand = [&](int i) { return inputs[static_cast<size_t>(i)]; };
  const FeatureMap x = feature_map(inputs[0].desc), y = feature_map(outputs[0].desc);
  const int64_t wide_channels = operand(at.deep_weights).desc.shape[0];
  Plane wide(p.expand ? x.n : 0, wide_channels, x.h, x.w), deep(y.n, wide_channels, y.h, y.w);
  if (p.expand) {
    std::vector<TensorView> from{inputs[0], operand(at.wide_weights)};
    if (at.wide_bias >= 0) from.push_back(operand(at.wide_bias));
    pointwise_part(p.wide, from, wide.view());
  }
  std::vector<TensorView> from{p.expand ? wide.view() : inputs[0], operand(at.deep_weights)};
  if (at.deep_bias >= 0) from.push_back(operand(at.deep_bias));
  DepthwiseParams depthwise;
  depthwise.window = p.window;
  depthwise.epilogue = p.deep;
  const TensorView deep_view = deep.view();
  depthwise_reference(depthwise, from, {&deep_view, 1});
  from = {deep_view, operand(at.weights)};
  if (at.bias >= 0) from.push_back(operand(at.bias));
  if (at.residual >= 0) from.push_back(operand(at.residual));
  pointwise_part(p.project, from, outputs[0]);
}

}  // namespace sparkle
