#include "check/estimate.h"

#include <algorithm>

#include "base/round_up.h"
#include "families/common.h"
#include "families/types.h"
#include "plan/choose/choose.h"
#include "plan/choose/cost.h"

namespace sparkle {
namespace {

constexpr int64_t kTile = 64;  // rows and columns of the smallest tile that hides its loads

double number(int64_t n) { return static_cast<double>(n); }

double operand_bytes(const ProductSizes& s, const Problem& p, Precision precision) {
  const double size = number(size_of(stored_type(precision)));
  const double weights = p.kind == ProblemKind::matmul ? number(p.batch) * number(p.depth) * number(p.columns)
                                                       : number(p.k) * number(p.c) / number(p.groups) * number(p.window.taps());
  const double in = p.kind == ProblemKind::matmul ? number(p.batch) * number(p.rows) * number(p.depth)
                                                  : number(p.n) * number(p.c) * number(p.in[0] * p.in[1] * p.in[2]);
  const double out = p.kind == ProblemKind::matmul ? number(s.products) * number(s.rows) * number(s.columns)
                                                   : number(p.n) * number(p.k) * number(p.out[0] * p.out[1] * p.out[2]);
  return size * (weights + in + out * (1 + p.epilogue.residuals()));
}

// The problem on operands of a precision, as the planner is asked for it; weights are constant.
AnchorCall call_in(Problem problem, Precision precision, const Device& device) {
  const bool integers = precision == Precision::int8;
  Epilogue& e = problem.epilogue;
  e.post_op = {};
  if (integers) {
    const bool bias = e.bias;
    e = {};
    e.scale = true, e.bias = bias;
  } else {
    e.scale = false;
  }
  problem.dtype = integers ? "u8" : name_of(stored_type(precision));
  const ProblemOperands operands = operands_of(problem);
  AnchorCall call{problem, operands.inputs, operands.output};
  if (const DType type = stored_type(precision); size_of(type) == 2 && keeps(Family::gemm, device, type)) {
    for (TensorDesc& desc : call.inputs) desc.dtype = type;
    call.output.dtype = type;
  }
  if (integers) {
    call.inputs[1].dtype = DType::i8;
    size_t at = 2;
    call.inputs[at++].dtype = DType::f32;
    if (e.bias) call.inputs[at++].dtype = DType::i32;
    for (const DType type : {DType::u8, DType::i8, DType::u8}) call.inputs.push_back(dense_desc(type, {1}));
  } else {
    const bool exact = precision == Precision::fp16 || precision == Precision::bf16;
    call.fit = WeightFit{exact && precision == Precision::fp16 ? Fit::exact : Fit::rounded,
                         exact && precision == Precision::bf16 ? Fit::exact : Fit::rounded};
  }
  return call;
}

}  // namespace

std::optional<Estimate> estimate(const Problem& problem, Precision precision, const Device& device) {
  if (!fastest_unit(device, precision)) return std::nullopt;
  PlanOptions options;
  if (precision == Precision::tf32) options.algorithm = "matrix_tf32";  // which no plan takes that is not asked to
  auto choice = choose(call_in(problem, precision, device), device, options);
  if (!choice.ok() || choice->without_kernel) return std::nullopt;
  Estimate e;
  e.cost = choice->cost, e.algorithm = choice->algorithm;
  // The stage with the products names the unit: transforms before and behind it take less.
  size_t longest = 0;
  for (size_t i = 1; i < choice->costs.size(); ++i)
    if (choice->footprints[i].executed_flops > choice->footprints[longest].executed_flops) longest = i;
  e.unit = unit_of(choice->schedules[longest]), e.variant = variant_of(choice->schedules[longest]);
  e.bytes = operand_bytes(product_sizes(problem), problem, precision);
  return e;
}

std::optional<Precision> precision_of(const Problem& problem) {
  const auto type = dtype_from(problem.dtype);
  if (!type) return std::nullopt;
  switch (*type) {
    case DType::f32: return Precision::fp32;
    case DType::f16: return Precision::fp16;
    case DType::bf16: return Precision::bf16;
    case DType::i8:
    case DType::u8: return Precision::int8;
    default: return std::nullopt;
  }
}

ProductSizes product_sizes(const Problem& p) {
  if (p.kind == ProblemKind::matmul) return {p.batch, p.rows, p.columns, p.depth};
  const Triple& pixels = p.kind == ProblemKind::conv ? p.out : p.in;
  const int64_t c = p.c / p.groups, k = p.k / p.groups;
  return {p.groups, p.n * pixels[0] * pixels[1] * pixels[2], k, c * p.window.taps()};
}

int64_t tiles_of(const Problem& problem) {
  const ProductSizes s = product_sizes(problem);
  return s.products * divided(s.rows, kTile) * divided(s.columns, kTile);
}

double estimate_copy(double bytes, const Device& device) {
  Footprint footprint;
  footprint.bytes = bytes_per_level(device, bytes, bytes);
  footprint.parallel_items = bytes;
  LoopSchedule schedule;
  schedule.variant = kNoKernel;
  return cost_of(footprint, schedule, device).seconds;
}

bool pays(double now_seconds, double then_seconds) { return then_seconds < now_seconds * (1 - kLeastGain); }

}  // namespace sparkle
