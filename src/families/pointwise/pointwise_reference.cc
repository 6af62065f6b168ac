// The pointwise family: the program in double precision, element by element, and what it tells the planner.
// Integers beyond 2^53 lose their last bits (i64 passes through double). Where operands and result are integers a quotient is
// truncated like ONNX's Div; a result stored as integer is truncated like ONNX's Cast.
#include <algorithm>
#include <cmath>

#include "families/common.h"
#include "families/element.h"
#include "families/walk.h"

namespace sparkle {
namespace {

constexpr Variant kVariants[] = {
#define VARIANT(name, device, unit, rows, vectors, registers, note) \
  {name, DeviceKind::device, UnitKind::unit, rows, vectors, registers, note},
#include "families/pointwise/variants.inc"
#undef VARIANT
};

void pointwise_reference(const StageParams& params, std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
  const PointwiseParams& p = std::get<PointwiseParams>(params);
  const TensorView& out = outputs[0];
  const bool whole = !is_float(out.desc.dtype) &&
                     std::none_of(inputs.begin(), inputs.end(), [](const TensorView& v) { return is_float(v.desc.dtype); });
  std::vector<double> values(inputs.size() + p.program.size());
  for_each_index(out.desc.shape, [&](const Dims& at) {
    for (size_t i = 0; i < inputs.size(); ++i) values[i] = load_element(inputs[i].desc.dtype, element_at(inputs[i], at));
    size_t next = inputs.size();
    for (const PointwiseInstruction& step : p.program) {
      const auto value = [&](int i) { return values[static_cast<size_t>(i)]; };
      const double result = evaluate(step.op, value(step.x), value(step.y), value(step.z), step.a, step.b);
      values[next++] = whole && step.op == PointwiseOp::div ? std::trunc(result) : result;
    }
    double result = values[next - 1];
    if (!is_float(out.desc.dtype) && out.desc.dtype != DType::boolean) result = std::trunc(result);
    store_element(out.desc.dtype, result, element_at(out, at));
  });
}

// Operations of one element: about two dozen for functions made of polynomials, one otherwise.
double weight(PointwiseOp op) {
  switch (op) {
    case PointwiseOp::pow:
    case PointwiseOp::mod:
    case PointwiseOp::tan:
    case PointwiseOp::asin:
    case PointwiseOp::acos:
    case PointwiseOp::atan:
    case PointwiseOp::sinh:
    case PointwiseOp::cosh:
    case PointwiseOp::asinh:
    case PointwiseOp::acosh:
    case PointwiseOp::atanh: return 400;  // lane by lane
    case PointwiseOp::exp:
    case PointwiseOp::log:
    case PointwiseOp::sin:
    case PointwiseOp::cos:
    case PointwiseOp::erf:
    case PointwiseOp::elu:
    case PointwiseOp::selu:
    case PointwiseOp::celu:
    case PointwiseOp::sigmoid:
    case PointwiseOp::tanh:
    case PointwiseOp::silu:
    case PointwiseOp::gelu:
    case PointwiseOp::gelu_tanh:
    case PointwiseOp::softplus:
    case PointwiseOp::mish: return 24;
    case PointwiseOp::div:
    case PointwiseOp::sqrt:
    case PointwiseOp::reciprocal: return 8;
    default: return 1;
  }
}

Footprint footprint(const Stage& stage, const Schedule&, const Device& device) {
  double flops = 0;
  for (const PointwiseInstruction& step : std::get<PointwiseParams>(stage.params).program) flops += weight(step.op);
  return streaming_footprint(stage, device, flops * static_cast<double>(stage.outputs[0].elements()));
}

std::vector<Schedule> schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not) {
  const auto vectorised = [](const TensorDesc& desc) {
    return desc.dtype == DType::f32 || desc.dtype == DType::boolean || desc.dtype == DType::u8;
  };
  if (variant.name != "plain" && (!std::all_of(stage.inputs.begin(), stage.inputs.end(), vectorised) ||
                                  (stage.outputs[0].dtype != DType::f32 && stage.outputs[0].dtype != DType::boolean))) {
    why_not = Reason::type_not_served;
    return {};
  }
  return loop_schedules(variant, device, why_not);
}

}  // namespace

const FamilyInfo& pointwise_info() {
  static const FamilyInfo family = {"pointwise", kVariants, pointwise_reference, footprint, schedules};
  return family;
}

}  // namespace sparkle
