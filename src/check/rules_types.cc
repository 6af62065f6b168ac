// Rules on element types: what no unit multiplies, what is converted to and fro, how weights are quantised.
#include <algorithm>

#include "check/rules.h"
#include "families/type_set.h"
#include "graph/evaluate/values.h"

namespace sparkle::rule {
namespace {

constexpr double kWorthIt = 0.9;  // of a layer's time, at most, for another type to be advised

template <class T>
const Op* made_by(const Graph& graph, TensorId id) {
  const Op* op = id == kAbsent ? nullptr : producer(graph, id);
  return op && std::holds_alternative<T>(op->params) ? op : nullptr;
}

template <class T>
bool read_by(const Graph& graph, TensorId id) {
  return std::any_of(graph.ops.begin(), graph.ops.end(), [&](const Op& op) {
    return std::holds_alternative<T>(op.params) && std::find(op.inputs.begin(), op.inputs.end(), id) != op.inputs.end();
  });
}

}  // namespace

std::optional<Finding> wide_type(const Subject& s) {
  if (!s.problem || s.precision != Precision::fp32 || is_channelwise(*s.problem)) return std::nullopt;
  const auto narrow = narrow_precision(s.device);
  if (!narrow || mixed_types(s) || float_island(s)) return std::nullopt;
  const MathUnit* unit = fastest_unit(s.device, *narrow, UnitKind::matrix);
  const double then = s.seconds_if(*s.problem, *narrow);
  if (then > kWorthIt * s.row.seconds) return std::nullopt;
  Finding f;
  f.code = Reason::wide_type;
  f.in_model = f.by_fix = true;
  f.now_seconds = s.row.seconds, f.then_seconds = std::min(then, s.row.seconds);
  const MathUnit* own = s.device.unit(s.row.unit);
  f.rule = "fp32 on " + s.row.unit;
  if (own && own->total_flops_per_second > 0)
    f.rule += " at " + in_digits(own->total_flops_per_second * 1e-12, 1) + " Tflop/s, where " + unit->name + " has " +
              in_digits(unit->total_flops_per_second * 1e-12, 1);
  f.fix = "store it in " + std::string(name_of(*narrow)) + " ('sparkle fix --precision " + std::string(name_of(*narrow)) + "')";
  const MathUnit* tf32 = fastest_unit(s.device, Precision::tf32);
  if (tf32 && s.seconds_if(*s.problem, Precision::tf32) <= kWorthIt * s.row.seconds)
    f.fix += ", or allow TF32 (" + tf32->name + "; --accuracy 1e-3)";
  return f;
}

std::optional<Finding> double_type(const Subject& s) {
  if (!s.problem || s.problem->dtype != "f64") return std::nullopt;
  Finding f;
  f.code = Reason::double_type;
  f.in_model = true;
  f.now_seconds = s.row.seconds, f.then_seconds = std::min(s.row.seconds, s.seconds_if(*s.problem, Precision::fp32));
  f.rule = s.row.has_kernel()
               ? "products in fp64, of which " + s.device.name + " computes a fraction of its rate in fp32"
               : "products in fp64, which have no kernel for " + s.device.name + "; the time is its roofs' in fp32";
  f.fix = "store it in fp32, whose sums keep about seven digits";
  return f;
}

std::optional<Finding> type_without_unit(const Subject& s) {
  if (!s.problem || !s.precision || *s.precision == Precision::fp32 || fastest_unit(s.device, *s.precision))
    return std::nullopt;
  Finding f;
  f.code = Reason::type_without_unit;
  f.in_model = true;
  f.now_seconds = f.then_seconds = s.row.seconds;
  const std::string type(name_of(*s.precision));
  f.rule = s.device.name + " has no unit for " + type + ": tensors are widened to fp32 in front of the products";
  f.fix = "store the model in fp32";
  for (const Precision other : {Precision::bf16, Precision::fp16, Precision::int8})
    if (other != *s.precision && fastest_unit(s.device, other)) {
      f.fix = "store the model in " + std::string(name_of(other)) + ", or in fp32";
      break;
    }
  return f;
}

std::optional<Finding> mixed_types(const Subject& s) {
  if (!s.problem) return std::nullopt;
  for (const Op* op : s.ops) {
    if (!is_product(*op)) continue;
    for (size_t i = 0; i < op->inputs.size() && i < 2; ++i) {
      const Op* cast = made_by<CastOp>(s.graph, op->inputs[i]);
      if (!cast) continue;
      const GraphTensor &from = s.graph.tensor(cast->inputs[0]), &to = s.graph.tensor(op->inputs[i]);
      if (from.dtype == to.dtype) continue;
      Finding f;
      f.code = Reason::mixed_types;
      f.in_model = true;
      f.now_seconds = f.then_seconds = s.row.seconds;
      f.rule = "'" + from.name + "' is " + std::string(name_of(from.dtype)) + " and is converted to " +
               std::string(name_of(to.dtype)) + " for this layer (" +
               in_bytes(static_cast<double>(to.shape.product()) * static_cast<double>(size_of(to.dtype))) +
               " more to write and to read)";
      Problem like = *s.problem;
      like.dtype = name_of(from.dtype);
      const auto narrow = precision_of(like);
      const bool faster = narrow && is_float(from.dtype) && fastest_unit(s.device, *narrow);
      if (faster) f.then_seconds = std::min(s.row.seconds, s.seconds_if(*s.problem, *narrow));
      f.fix = "keep " + std::string(name_of(faster ? from.dtype : to.dtype)) + " on both sides of the layer and drop the Cast";
      return f;
    }
  }
  return std::nullopt;
}

std::optional<Finding> float_island(const Subject& s) {
  for (const Op* op : s.ops) {
    if (std::holds_alternative<DequantizeOp>(op->params) || std::holds_alternative<QuantizeOp>(op->params)) continue;
    for (const TensorId in : op->inputs) {
      const Op* from = made_by<DequantizeOp>(s.graph, in);
      if (!from || s.graph.tensor(from->inputs[0]).constant) continue;
      const bool quantised_again = std::any_of(op->outputs.begin(), op->outputs.end(), [&](TensorId out) {
        return out != kAbsent && read_by<QuantizeOp>(s.graph, out);
      });
      if (!quantised_again) continue;
      Finding f;
      f.code = Reason::float_island;
      f.in_model = true;
      f.now_seconds = f.then_seconds = s.row.seconds;
      if (s.problem && fastest_unit(s.device, Precision::int8))
        f.then_seconds = std::min(s.row.seconds, s.seconds_if(*s.problem, Precision::int8));
      f.rule = op->type + " is computed in floats between DequantizeLinear and QuantizeLinear: " +
               (s.problem ? "its weights are not quantised, or not in a form that integer kernels take"
                          : "no integer kernel computes it in this form");
      f.fix = s.problem ? "quantise its weights too (per channel, zero point 0), or leave the layers around it in floats"
                        : "move it in front of the first QuantizeLinear or behind the last DequantizeLinear, or express it in "
                          "operators that are quantised";
      return f;
    }
  }
  return std::nullopt;
}

std::optional<Finding> weights_asymmetric(const Subject& s) {
  for (const Op* op : s.ops) {
    const bool product =
        std::holds_alternative<QuantizedConvOp>(op->params) || std::holds_alternative<QuantizedMatMulOp>(op->params);
    constexpr size_t kZeroOfWeights = 4;
    if (!product || op->inputs.size() <= kZeroOfWeights || op->inputs[kZeroOfWeights] == kAbsent) continue;
    const auto& zero = s.graph.tensor(op->inputs[kZeroOfWeights]).constant;
    if (!zero) continue;
    int64_t not_zero = 0;
    double example = 0;
    for (int64_t i = 0; i < zero->elements(); ++i)
      if (const double value = element(*zero, i); value != 0) ++not_zero, example = value;
    if (not_zero == 0) continue;
    Finding f;
    f.code = Reason::weights_asymmetric;
    f.in_model = true;
    f.now_seconds = f.then_seconds = s.row.seconds;
    f.rule =
        "the weights' zero point is " + in_digits(example, 0) + ": each sum also needs that many times the sum of its inputs";
    f.fix = "quantise weights symmetrically: int8, zero point 0, a scale per channel";
    return f;
  }
  return std::nullopt;
}

std::optional<Finding> weights_not_constant(const Subject& s) {
  for (const Op* op : s.ops) {
    if (!std::holds_alternative<ConvOp>(op->params) || s.graph.tensor(op->inputs[1]).constant) continue;
    Finding f;
    f.code = Reason::weights_not_constant;
    f.now_seconds = f.then_seconds = s.row.seconds;
    f.rule =
        "'" + s.graph.tensor(op->inputs[1]).name + "' is computed at run time: it is laid out for the kernel anew in each run";
    f.fix = "fold what computes it into a constant before export, where it does not depend on an input";
    return f;
  }
  return std::nullopt;
}

}  // namespace sparkle::rule
