#include "families/values/post_ops.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "families/common.h"
#include "families/family.h"
#include "families/gemm/gemm_tiles.h"
#include "families/integers/integers.h"

namespace sparkle {

// Where programs are printed for the device, they can be printed into another kernel.
bool takes_post_ops(const Device& device) {
  const auto& variants = pointwise_info().variants;
  return std::any_of(variants.begin(), variants.end(),
                     [&](const Variant& v) { return v.name == "printed" && v.runs_on(device); });
}

bool can_be_post_op(const PointwiseParams& program) {
  if (program.program.empty() || program.inputs > 1 + kMostPostOpOperands) return false;
  return std::none_of(program.program.begin(), program.program.end(),
                      [](const PointwiseInstruction& step) { return step.op == PointwiseOp::power_of_two; });
}

Reason post_op_refusal(const Stage& stage, const Variant& variant, const Device& device) {
  const Epilogue* e = epilogue_of(stage.params);
  if (!e || !e->has_post_op() || variant.name == "plain") return Reason::none;
  const Family family = stage.family();
  const bool placed =
      family == Family::gemm || family == Family::winograd || family == Family::depthwise || family == Family::fft;
  if (!variant.for_workgroups() || !variant.runs_on(device) || !takes_post_ops(device) || !placed ||
      variant.name == kNativeType || is_integer(stage.inputs) || !can_be_post_op(e->post_op))
    return Reason::tail_not_served;
  // A driver that fails on printed programs by themselves is not given them inside of others.
  const bool denied = device.denies(name_of(family), post_op_name(e->post_op)) || device.denies("pointwise", "printed");
  return denied ? Reason::failed_probe : Reason::none;
}

std::string post_op_name(const PointwiseParams& post_op) {
  char text[32];
  std::snprintf(text, sizeof text, "tail:%016llx", static_cast<unsigned long long>(hash_text(to_text(post_op))));
  return text;
}

double post_op_slack(const PointwiseParams& post_op, std::span<const double> operands, double error) {
  std::vector<double> values(operands.begin(), operands.end());
  const double value = evaluate(post_op, values);
  double slack = 0;
  for (const double sign : {-1.0, 1.0}) {
    values[0] = operands[0] + sign * error;
    if (const double change = std::abs(evaluate(post_op, values) - value); std::isfinite(change))
      slack = std::max(slack, change);
  }
  return slack;
}

}  // namespace sparkle
