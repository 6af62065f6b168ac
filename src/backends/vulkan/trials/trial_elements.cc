#include "backends/vulkan/trials/trial_elements.h"

#include <algorithm>
#include <cmath>

#include "backends/vulkan/trials/trial_moves.h"
#include "families/pointwise/arithmetic.h"
#include "families/quantize/quantize.h"

namespace sparkle::vulkan {
namespace {

double drawn(int64_t least, int64_t most, std::mt19937& random) {
  return static_cast<double>(least + static_cast<int64_t>(random() % static_cast<uint32_t>(most - least + 1)));
}

// An instruction on the first operands, whatever it was on.
PointwiseInstruction on_operands(PointwiseInstruction step, int inputs) {
  if (inputs > 0) step.x = 0, step.y = 1 % inputs, step.z = 2 % inputs;
  return step;
}

// The sum of a program's operations, each on operands alone: a chain of them may make any difference in rounding as large as
// one likes, and such a chain is no fault of the driver's.
PointwiseParams operations_alone(const PointwiseParams& given) {
  PointwiseParams p{given.inputs, {}};
  std::vector<PointwiseInstruction> seen;
  int sum = -1;
  const auto add = [&](const PointwiseInstruction& step) {
    p.program.push_back(step);
    return p.inputs + static_cast<int>(p.program.size()) - 1;
  };
  for (const PointwiseInstruction& instruction : given.program) {
    const PointwiseInstruction step = on_operands(instruction, p.inputs);
    if (std::find(seen.begin(), seen.end(), step) != seen.end() || (p.inputs == 0 && arity_of(step.op) > 0)) continue;
    seen.push_back(step);
    const int next = add(step);
    sum = sum < 0 ? next : add({PointwiseOp::add, sum, next, 0, 0, 0});
  }
  return p.program.empty() ? given : p;
}

PointwiseParams last_alone(const PointwiseParams& given) {
  if (given.inputs == 0 || given.program.empty()) return given;
  return {given.inputs, {on_operands(given.program.back(), given.inputs)}};
}

// What rounds nothing.
bool rounds_nothing(PointwiseOp op) {
  using enum PointwiseOp;
  constexpr PointwiseOp kExact[] = {
      identity,    constant,    min, max, select, less,  less_equal, greater, greater_equal, equal, logical_and, logical_or,
      logical_xor, logical_not, neg, abs, sign,   floor, ceil,       round,   is_nan,        relu,  clip};
  return std::find(std::begin(kExact), std::end(kExact), op) != std::end(kExact);
}

DType arithmetic_in(const Stage& stage) { return pointwise_arithmetic(stage.inputs, stage.outputs[0]); }

}  // namespace

bool is_exact(const Stage& stage) {
  const auto& program = get<PointwiseParams>(stage.params).program;
  return !is_float(arithmetic_in(stage)) ||
         std::all_of(program.begin(), program.end(), [](const PointwiseInstruction& step) { return rounds_nothing(step.op); });
}

std::vector<Stage> pointwise_stages(const Trial& t) {
  const auto& given = get<PointwiseParams>(t.params);
  const DType y = t.outputs[0];
  const bool real = is_float(pointwise_arithmetic(t.inputs, y));
  std::vector<std::pair<PointwiseParams, DType>> programs;
  if (real && is_float(y)) {
    programs.emplace_back(operations_alone(given), y);
  } else {
    programs.emplace_back(real ? last_alone(given) : given, y);
    if (real && given.program.size() > 1) programs.emplace_back(operations_alone(given), DType::f32);
  }
  const Dims shape{3, 5, 7};
  std::vector<Stage> stages;
  for (const auto& [program, type] : programs)
    for (const bool dense : {false, true}) {
      Stage stage;
      stage.params = program;
      for (size_t i = 0; i < t.inputs.size(); ++i)
        stage.inputs.push_back(described(t.inputs[i], shape, false, dense || i % 2 == 0 ? 0 : 2));
      if (dense && stage.inputs.size() > 1)
        for (int axis = 0; axis < shape.size(); ++axis) stage.inputs.back().layout.pitch[axis] = 0;
      stage.outputs.push_back(described(type, shape, false, dense ? 0 : 1));
      stages.push_back(std::move(stage));
    }
  return stages;
}

double pointwise_value(const Stage& stage, size_t operand, std::mt19937& random) {
  const DType type = stage.inputs[operand].dtype;
  std::normal_distribution<double> normal;
  if (type == DType::boolean) return drawn(0, 1, random);
  const bool exact = is_exact(stage);
  if (is_float(type)) {
    if (!exact) return normal(random);
    const double kind = drawn(0, 2, random);
    if (kind == 0) return std::round(normal(random) * 4) / 2;
    return kind == 1 ? 60 * normal(random) : std::ldexp(normal(random), static_cast<int>(drawn(-24, 40, random)));
  }
  if (!exact) return drawn(-3, 3, random);
  if (drawn(0, 2, random) > 0) return drawn(-9, 9, random);
  return std::round(std::ldexp(normal(random), static_cast<int>(drawn(0, 8 * size_of(type) - 5, random))));
}

std::vector<Stage> quantize_stages(const Trial& t) {
  auto p = get<QuantizeParams>(t.params);
  const Dims shape{3, 5, 8};
  Dims listed = shape;
  // How long blocks are and along which axis is no matter of the kernel's.
  if (p.block > 0) p.axis = std::clamp(p.axis, 0, 2), p.block = 3, listed[p.axis] = (shape[p.axis] + 2) / 3;
  std::vector<Stage> stages;
  for (const int64_t gap : {0, 1}) {
    Stage stage;
    stage.params = p;
    const auto input = [&](const Dims& dims, int64_t between_rows) {
      stage.inputs.push_back(described(t.inputs[stage.inputs.size()], dims, false, between_rows));
    };
    const auto output = [&](const Dims& dims, int64_t between_rows) {
      stage.outputs.push_back(described(t.outputs[stage.outputs.size()], dims, false, between_rows));
    };
    const auto numbers = [&](int count) {
      for (int i = 0; i < count; ++i) input({}, 0);
    };
    switch (p.kind) {
      case QuantizeKind::quantize:
      case QuantizeKind::dequantize:
        input(shape, gap), input(listed, 0), input(listed, 0);
        output(shape, 0);
        break;
      case QuantizeKind::dynamic:
        input(shape, gap);
        output(shape, 0), output({}, 0), output({}, 0);
        break;
      case QuantizeKind::add:
        input(shape, gap), numbers(2), input(shape, 0), numbers(4);
        output(shape, 0);
        break;
      case QuantizeKind::average: {
        // More channels than a workgroup has.
        const Dims map{2, 37, 3, 5};
        stage.inputs.push_back(described(t.inputs[0], map, gap == 0, gap));
        numbers(4);
        output({2, 37, 1, 1}, gap);
        break;
      }
      case QuantizeKind::factor:
        input(shape, gap), input(shape, 0), input(shape, 0);
        output(shape, 0);
        for (int axis = 0; axis < 2; ++axis) stage.inputs[1].layout.pitch[axis] = 0;
        break;
    }
    stages.push_back(std::move(stage));
  }
  return stages;
}

double quantize_value(const Stage& stage, size_t operand, std::mt19937& random) {
  const QuantizeKind kind = get<QuantizeParams>(stage.params).kind;
  std::normal_distribution<double> normal;
  if (!is_float(stage.inputs[operand].dtype)) return 60 * normal(random);
  const bool scale = kind == QuantizeKind::add || kind == QuantizeKind::average || kind == QuantizeKind::factor;
  return scale ? std::exp(0.5 * normal(random)) : normal(random);
}

}  // namespace sparkle::vulkan
