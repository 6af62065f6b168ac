#include "check/estimate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/round_up.h"
#include "families/common.h"
#include "plan/choose/choose.h"
#include "plan/choose/cost.h"

namespace sparkle {
namespace {

constexpr int64_t kTile = 64;         // rows and columns of the smallest tile that hides its loads
constexpr int64_t kLoadedTile = 128;  // of the one that loads are counted for

double number(int64_t n) { return static_cast<double>(n); }

// How many times as long as its products the unit waits for their operands, which come in runs of `in` elements, and for
// results in runs of `out`: both per product of a tile.
double feed_of(const MathUnit& unit, int64_t in, int64_t out, int64_t depth) {
  const int64_t want = channel_multiple(unit);
  if (unit.kind != UnitKind::matrix || want <= 1) return 1;
  const double loads = number(want) / number(std::gcd(in, want)), stores = number(want) / number(std::gcd(out, want));
  constexpr double kStored = kLoadedTile / 2;  // of a tile's results, in the measure of its two operands
  return (number(depth) * loads + kStored * stores) / (number(depth) + kStored);
}

// Products as the unit executes them: whole instructions.
double executed(const ProductSizes& s, const MathUnit& unit) {
  if (unit.kind != UnitKind::matrix) return 2 * number(s.products) * number(s.rows) * number(s.columns) * number(s.depth);
  const auto whole = [](int64_t n, int64_t step) { return number(rounded_up(n, std::max<int64_t>(1, step))); };
  // Units of wide instructions have narrower ones too, down to eight columns.
  return 2 * number(s.products) * whole(s.rows, std::min(unit.m, 16)) * whole(s.columns, std::min(unit.n, 8)) *
         whole(s.depth, unit.k);
}

struct Candidates {
  const Device& device;
  Estimate best{};
  bool found = false;

  void add(const MathUnit& unit, double flops, double bytes, double tasks, double pace) {
    Footprint footprint;
    footprint.nominal_flops = footprint.executed_flops = flops;
    footprint.bytes = bytes_per_level(device, bytes, bytes);
    footprint.parallel_items = tasks;
    LoopSchedule schedule;
    schedule.variant = kNoKernel, schedule.unit = unit.name;
    const Cost cost = cost_of(footprint, schedule, device, pace);
    if (found && cost.seconds >= best.cost.seconds) return;
    found = true;
    best.cost = cost, best.unit = unit.name, best.bytes = bytes;
  }
};

template <class Add>
Estimate by_roofs(Precision precision, const Device& device, const Add& add) {
  Candidates candidates{device};
  for (const bool matrix : {true, false})  // of two that take as long the matrix unit
    for (const MathUnit& unit : device.units)
      if (multiplies(unit, precision) && (unit.kind == UnitKind::matrix) == matrix) add(candidates, unit, precision);
  // What no unit multiplies is widened before; vectors of fp32 take anything.
  for (const MathUnit& unit : device.units)
    if (unit.kind == UnitKind::vector_fma && multiplies(unit, Precision::fp32)) add(candidates, unit, precision);
  return candidates.best;
}

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
  const auto store = [&](TensorDesc& desc, DType type) { desc.dtype = type; };
  if (precision == Precision::fp16 && device.has_workgroups() && device.unit("fma-f16")) {
    for (TensorDesc& desc : call.inputs) store(desc, DType::f16);
    store(call.output, DType::f16);
  }
  if (integers) {
    store(call.inputs[1], DType::i8);
    size_t at = 2;
    store(call.inputs[at++], DType::f32);
    if (e.bias) store(call.inputs[at++], DType::i32);
    for (const DType type : {DType::u8, DType::i8, DType::u8}) call.inputs.push_back(dense_desc(type, {1}));
  } else {
    const bool exact = precision == Precision::fp16 || precision == Precision::bf16;
    call.fit = WeightFit{exact && precision == Precision::fp16 ? Fit::exact : Fit::rounded,
                         exact && precision == Precision::bf16 ? Fit::exact : Fit::rounded};
  }
  return call;
}

std::optional<Estimate> planned(const Problem& problem, Precision precision, const Device& device) {
  auto choice = choose(call_in(problem, precision, device), device, {});
  if (!choice.ok() || choice->without_kernel) return std::nullopt;
  Estimate e;
  e.cost = choice->cost, e.algorithm = choice->algorithm, e.kernel = true;
  // The stage with the products names the unit: transforms before and behind it take less.
  size_t longest = 0;
  for (size_t i = 1; i < choice->costs.size(); ++i)
    if (choice->footprints[i].executed_flops > choice->footprints[longest].executed_flops) longest = i;
  e.unit = unit_of(choice->schedules[longest]), e.variant = variant_of(choice->schedules[longest]);
  e.bytes = operand_bytes(product_sizes(problem), problem, precision);
  return e;
}

}  // namespace

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
  if (p.kind == ProblemKind::matmul) return {p.batch, p.rows, p.columns, p.depth, std::gcd(p.depth, p.columns), p.columns};
  const Triple& pixels = p.kind == ProblemKind::conv ? p.out : p.in;
  const int64_t c = p.c / p.groups, k = p.k / p.groups;
  return {p.groups, p.n * pixels[0] * pixels[1] * pixels[2], k, c * p.window.taps(), c, k};
}

int64_t tiles_of(const Problem& problem) {
  const ProductSizes s = product_sizes(problem);
  return s.products * divided(s.rows, kTile) * divided(s.columns, kTile);
}

Estimate estimate_by_roofs(const Problem& problem, Precision precision, const Device& device) {
  const ProductSizes s = product_sizes(problem);
  const double bytes = operand_bytes(s, problem, precision);
  const bool channelwise = problem.groups > 1 && problem.groups == problem.c;
  return by_roofs(precision, device, [&](Candidates& candidates, const MathUnit& unit, Precision) {
    if (channelwise && unit.kind != UnitKind::vector_fma) return;  // no sum over channels
    candidates.add(unit, executed(s, unit), bytes, number(tiles_of(problem)), feed_of(unit, s.runs_in, s.runs_out, s.depth));
  });
}

double AttentionSizes::flops() const {
  return 2 * number(heads) * number(queries) * number(keys) * (number(head) + number(value));
}

Estimate estimate_by_roofs(const AttentionSizes& a, Precision precision, const Device& device) {
  const double size = number(size_of(stored_type(precision)));
  const double bytes =
      size * number(a.heads) * (number(a.queries) * number(a.head + a.value) + number(a.keys) * number(a.head + a.value));
  return by_roofs(precision, device, [&](Candidates& candidates, const MathUnit& unit, Precision) {
    AttentionSizes whole = a;
    const bool matrix = unit.kind == UnitKind::matrix;
    if (matrix) whole.head = rounded_up(a.head, head_multiple(unit)), whole.value = rounded_up(a.value, head_multiple(unit));
    const double pace = matrix ? feed_of(unit, std::gcd(a.head, a.value), a.value, a.head) : 1;
    candidates.add(unit, whole.flops(), bytes, number(a.heads * divided(a.queries, kTile)), pace);
  });
}

double estimate_copy(double bytes, const Device& device) {
  Footprint footprint;
  footprint.bytes = bytes_per_level(device, bytes, bytes);
  footprint.parallel_items = bytes;
  LoopSchedule schedule;
  schedule.variant = kNoKernel;
  return cost_of(footprint, schedule, device).seconds;
}

bool pays(double now_seconds, double then_seconds, const Device& device) {
  return then_seconds < now_seconds * (has_backend(device) ? 1 - kLeastGain : 1);
}

std::optional<Estimate> estimate(const Problem& problem, Precision precision, const Device& device) {
  if (!fastest_unit(device, precision)) return std::nullopt;
  if (!has_backend(device)) return estimate_by_roofs(problem, precision, device);
  return planned(problem, precision, device);
}

}  // namespace sparkle
