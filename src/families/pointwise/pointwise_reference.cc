// The pointwise family: the program element by element, and what it tells the planner. Floats are computed in double precision,
// integers in their own type (families/type_set.h says which type a program is computed in), a result of another type is
// converted as by Cast.
#include <algorithm>
#include <cmath>

#include "families/blocking.h"
#include "families/common.h"
#include "families/values/convert.h"
#include "families/loops/grain.h"
#include "families/pointwise/arithmetic.h"
#include "families/pointwise/gpu_doubles.h"
#include "families/pointwise/integers.h"
#include "families/values/activation.h"
#include "families/windows/samples.h"
#include "families/loops/walk.h"

namespace sparkle {
namespace {

constexpr Variant kVariants[] = {
#include "families/pointwise/variants.inc"
};
constexpr TypeRow kTypeRows[] = {
    {"functions", "Exp, Log, Sigmoid, Gelu and every other not below", kFloats,
     "f16 and bf16 read and written by the kernel, f64 by the variant typed",
     "f64 (but trigonometric, inverse and error functions)"},
    {"arithmetic",
     "Add, Sub, Mul, Div, Mod, Pow, Max, Min, Sum, Clip, Neg, Abs, Sign, Relu, PRelu, Less, LessOrEqual, Greater, "
     "GreaterOrEqual",
     kNumbers, "f16 and bf16 read and written by the kernel, f64 and integers by the variant typed", "all"},
    {"any", "Where, Equal, And, Or, Xor, Not", kComputed,
     "f16, bf16 and bool read and written by the kernel, f64 and integers by the variant typed", "all"},
    {"identity", "Identity, Cast, CastLike", kAllTypes,
     "f16, bf16, bool and the narrow types read and written by the kernel, between f64 and integers by the variant typed",
     "all"},
};

// A row of kTypeRows.
size_t form_of(PointwiseOp op) {
  switch (op) {
    case PointwiseOp::identity: return 3;
    case PointwiseOp::select:
    case PointwiseOp::equal:
    case PointwiseOp::logical_and:
    case PointwiseOp::logical_or:
    case PointwiseOp::logical_xor:
    case PointwiseOp::logical_not: return 2;
    default: return serves_integers(op);
  }
}
// That of a program's last instruction.
size_t type_form(const StageParams& params) {
  const auto& program = get<PointwiseParams>(params).program;
  return program.empty() ? 0 : form_of(program.back().op);
}

template <class T>
void run(const PointwiseParams& p, std::span<const TensorView> inputs, const TensorView& out) {
  std::vector<T> values(inputs.size() + p.program.size());
  for_each_index(out.desc.shape, [&](const Dims& at) {
    for (size_t i = 0; i < inputs.size(); ++i) load_row(inputs[i].desc.dtype, element_at(inputs[i], at), 0, 1, &values[i]);
    size_t next = inputs.size();
    for (const PointwiseInstruction& step : p.program) {
      const T x = values[static_cast<size_t>(step.x)], y = values[static_cast<size_t>(step.y)],
              z = values[static_cast<size_t>(step.z)];
      if constexpr (std::is_integral_v<T>) {
        values[next++] = integers::evaluate(step.op, x, y, z, step.a, step.b);
      } else {
        values[next++] = evaluate(step.op, x, y, z, step.a, step.b);
      }
    }
    store_row(out.desc.dtype, &values[next - 1], 1, element_at(out, at), 0);
  });
}

void pointwise_reference(const StageParams& params, std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
  const PointwiseParams& p = get<PointwiseParams>(params);
  std::vector<DType> types;
  for (const TensorView& input : inputs) types.push_back(input.desc.dtype);
  const DType type = pointwise_arithmetic(types, outputs[0].desc.dtype);
  if (is_float(type)) return run<double>(p, inputs, outputs[0]);
  with_type(type, [&]<class T>(T*) {
    if constexpr (std::is_integral_v<T>) run<T>(p, inputs, outputs[0]);
  });
}

constexpr double kLeastFunction = 20;  // operations of what is a function made of polynomials

// Operations of one element; those that are activations too take what these take.
double weight(PointwiseOp op) {
  switch (op) {
    case PointwiseOp::pow:
    case PointwiseOp::mod:
    case PointwiseOp::floor_mod:
    case PointwiseOp::tan:
    case PointwiseOp::asin:
    case PointwiseOp::acos:
    case PointwiseOp::atan:
    case PointwiseOp::sinh:
    case PointwiseOp::cosh:
    case PointwiseOp::asinh:
    case PointwiseOp::acosh:
    case PointwiseOp::atanh:
    case PointwiseOp::power_of_two: return 400;  // lane by lane
    case PointwiseOp::exp: return 21;
    case PointwiseOp::log:
    case PointwiseOp::sin:
    case PointwiseOp::cos: return 40;
    case PointwiseOp::erf: return 48;
    case PointwiseOp::elu:
    case PointwiseOp::selu: return flops_of(Activation::elu);
    case PointwiseOp::celu: return 80;
    case PointwiseOp::sigmoid:
    case PointwiseOp::silu: return flops_of(Activation::sigmoid);
    case PointwiseOp::tanh: return flops_of(Activation::tanh);
    case PointwiseOp::gelu: return flops_of(Activation::gelu);
    case PointwiseOp::gelu_tanh: return flops_of(Activation::gelu_tanh);
    case PointwiseOp::softplus: return flops_of(Activation::softplus);
    case PointwiseOp::mish: return flops_of(Activation::mish);
    case PointwiseOp::div:
    case PointwiseOp::sqrt:
    case PointwiseOp::reciprocal: return 8;
    default: return 1;
  }
}

// Of an element in CUDA's interpreter, as operations: what finds a step's values and its formula, and what finds and converts
// an operand (counted in the machine code for sm_80: some 30 instructions and some 40). They count where the compiled form is
// there to be compared with; elsewhere the interpreter is what there is, and its plans say what memory takes.
constexpr double kInterpretedStep = 60, kInterpretedOperand = 80;

Footprint footprint(const Stage& stage, const Schedule& schedule, const Device& device) {
  double flops = 0, functions = 0;
  for (const PointwiseInstruction& step : get<PointwiseParams>(stage.params).program)
    (weight(step.op) < kLeastFunction ? flops : functions) += weight(step.op);
  const auto elements = static_cast<double>(stage.outputs[0].elements());
  Footprint f = streaming_footprint(stage, device, flops * elements);
  f.nominal_flops += functions * elements;
  f.function_flops = functions * elements;
  if (variant_of(schedule) == "interpreted" && device.compiles)
    f.executed_flops += elements * (kInterpretedStep * static_cast<double>(get<PointwiseParams>(stage.params).program.size()) +
                                    kInterpretedOperand * static_cast<double>(stage.inputs.size() + 1));
  return f;
}

// What CUDA computes; `narrow`: its interpreters know the narrow types too, programs that are compiled with a model do not.
bool is_computed_by_cuda(const Stage& stage, bool narrow) {
  const auto stored = [&](const TensorDesc& desc) { return narrow || kComputed.has(desc.dtype); };
  const DType type = pointwise_arithmetic(stage.inputs, stage.outputs[0]);
  const auto has = [&](const PointwiseInstruction& step) {
    return is_float(type) ? narrow || step.op != PointwiseOp::power_of_two : serves_integers(step.op);
  };
  const auto& program = get<PointwiseParams>(stage.params).program;
  return std::all_of(program.begin(), program.end(), has) && std::all_of(stage.inputs.begin(), stage.inputs.end(), stored) &&
         stored(stage.outputs[0]);
}
// What of that its interpreter's record holds.
bool is_interpreted(const Stage& stage) {
  constexpr size_t kMostSteps = 64;
  return get<PointwiseParams>(stage.params).program.size() + stage.inputs.size() <= kMostSteps &&
         is_computed_by_cuda(stage, true);
}

// What programs printed for a GPU compute: f32, integers but for factors that are none (affine), and in double precision what
// gpu_doubles.h has.
bool is_printable(const Stage& stage, const Device& device) {
  const auto supported = [&](const TensorDesc& desc) {
    return size_of(desc.dtype) == 1   ? device.unit("alu-i8") != nullptr
           : size_of(desc.dtype) == 2 ? device.unit("fma-f16") != nullptr
                                      : true;
  };
  const DType type = pointwise_arithmetic(stage.inputs, stage.outputs[0]);
  const auto has = [&](const PointwiseInstruction& step) {
    if (type == DType::f32) return true;
    if (type == DType::f64) return has_double_on_gpus(step.op);
    return serves_integers(step.op) && step.op != PointwiseOp::affine;
  };
  const auto& program = get<PointwiseParams>(stage.params).program;
  return (type != DType::f64 || device.unit("alu-f64")) && std::all_of(program.begin(), program.end(), has) &&
         std::all_of(stage.inputs.begin(), stage.inputs.end(), supported) && supported(stage.outputs[0]);
}

std::vector<Schedule> schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not) {
  const bool single = pointwise_arithmetic(stage.inputs, stage.outputs[0]) == DType::f32;
  if (variant.for_workgroups() && variant.runs_on(device)) {
    constexpr size_t kMostOperands = 12;  // whose addresses a GPU is handed
    if (variant.needs_compiler() && !device.compiles) return why_not = Reason::compiler_missing, std::vector<Schedule>{};
    const bool supports_it = variant.name == "interpreted" ? is_interpreted(stage)
                             : variant.name == "compiled"  ? is_computed_by_cuda(stage, false)
                                                           : is_printable(stage, device);
    if (!supports_it) return why_not = Reason::type_not_served, std::vector<Schedule>{};
    if (stage.inputs.size() > kMostOperands) return why_not = Reason::layout_not_served, std::vector<Schedule>{};
  }
  if ((variant.name == "strips" && !single) || (variant.name == "typed" && single)) {
    why_not = Reason::type_not_served;
    return {};
  }
  return loop_schedules(stage, variant, device, why_not, 2 * kLeastElements);
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

// Conversions between all kinds of types, arithmetic in each, truth values, 16 bits beside 32.
std::vector<SampleForm> sample_forms() {
  using enum PointwiseOp;
  constexpr DType kF = DType::f32, kHalf = DType::f16, kByte = DType::u8, kTruth = DType::boolean;
  const auto program = [](std::vector<PointwiseInstruction> steps, std::vector<DType> inputs, DType output) {
    return SampleForm{PointwiseParams{static_cast<int>(inputs.size()), std::move(steps)}, inputs, {output}};
  };
  const auto cast = [&](DType from, DType to) { return program({{}}, {from}, to); };
  return {program({{add, 0, 1, 0, 0, 0}}, {kF, kF}, kF),
          cast(kF, DType::i32),
          cast(kF, kTruth),
          cast(DType::i64, kF),
          cast(DType::i8, kF),
          cast(DType::i64, DType::i16),
          cast(kTruth, DType::i64),
          cast(kHalf, kF),
          cast(kF, kHalf),
          cast(kF, DType::bf16),
          cast(DType::f64, kF),
          cast(DType::i64, DType::f64),
          cast(kF, DType::f8e4m3fn),
          cast(DType::i4, kF),
          program({{exp, 0, 0, 0, 0, 0}, {add, 2, 1, 0, 0, 0}}, {DType::f64, DType::f64}, DType::f64),
          program({{add, 0, 1, 0, 0, 0}}, {DType::i32, DType::i32}, DType::i32),
          program({{mul, 0, 1, 0, 0, 0}, {div, 2, 1, 0, 0, 0}, {clip, 3, 0, 0, -5, 7}}, {DType::i64, DType::i64}, DType::i64),
          program({{less, 0, 1, 0, 0, 0}}, {kF, kF}, kTruth),
          program({{equal, 0, 1, 0, 0, 0}}, {DType::i64, DType::i64}, kTruth),
          program({{select, 0, 1, 2, 0, 0}}, {kTruth, kF, kF}, kF),
          program({{sigmoid, 0, 0, 0, 0, 0}, {mul, 1, 2, 0, 0, 0}}, {kHalf, kF}, kHalf),
          program({{affine, 0, 0, 0, 0.25, 1.5}}, {kByte}, kF),
          program({{affine, 0, 0, 0, 40, 100}}, {kF}, kByte),
          program({{exp, 0, 0, 0, 0, 0}, {greater, 2, 1, 0, 0, 0}}, {kF, kF}, kTruth)};
}

// Programs among integers as they are; others operation by operation, and where their result is no float the last operation
// alone behind the conversion too. With gaps between rows, and densely with one value for all among the operands.
std::vector<Stage> samples(const SampleRequest& t) {
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
        for (int axis = 0; axis < shape.size(); ++axis) stage.inputs.back().layout.strides[axis] = 0;
      stage.outputs.push_back(described(type, shape, false, dense ? 0 : 1));
      stages.push_back(std::move(stage));
    }
  return stages;
}

double sample_value(const Stage& stage, size_t operand, std::mt19937& random) {
  const DType type = stage.inputs[operand].dtype;
  std::normal_distribution<double> normal;
  if (type == DType::boolean) return drawn_between(0, 1, random);
  const bool exact = is_exact(stage);
  if (is_float(type)) {
    if (!exact) return normal(random);
    const double kind = drawn_between(0, 2, random);
    if (kind == 0) return std::round(normal(random) * 4) / 2;
    return kind == 1 ? 60 * normal(random) : std::ldexp(normal(random), static_cast<int>(drawn_between(-24, 40, random)));
  }
  if (!exact) return drawn_between(-3, 3, random);
  if (drawn_between(0, 2, random) > 0) return drawn_between(-9, 9, random);
  return std::round(std::ldexp(normal(random), static_cast<int>(drawn_between(0, 8 * size_of(type) - 5, random))));
}

// Operators one after another on what lies in registers.
Blocking blocking(const Stage& stage, const Schedule& schedule, const Device& device) {
  Blocking b = streaming_blocking(stage, schedule, device);
  if (const size_t count = get<PointwiseParams>(stage.params).program.size(); count > 1)
    b.fused.push_back(counted(static_cast<int64_t>(count), "operation") + " in one pass");
  return b;
}

SampleRules comparison(const Stage& stage) { return {.exact = is_exact(stage), .rounds_to_integers = true}; }

}  // namespace

const TypeRow& type_row(PointwiseOp op) { return kTypeRows[form_of(op)]; }

const FamilyInfo& pointwise_info() {
  static const FamilyInfo family = {
      .params = ParamsType::of<PointwiseParams>,
      .variants = kVariants,
      .types = kTypeRows,
      .type_form = type_form,
      .gpu_16_bits = true,
      .reference = pointwise_reference,
      .footprint = footprint,
      .blocking = blocking,
      .schedules = schedules,
      .sample_forms = sample_forms,
      .samples = samples,
      .sample_value = sample_value,
      .comparison = comparison,
  };
  return family;
}

}  // namespace sparkle
