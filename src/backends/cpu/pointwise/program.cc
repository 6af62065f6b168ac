#include "backends/cpu/pointwise/program.h"

#include <algorithm>
#include <array>
#include <limits>

#include "families/pointwise/pointwise.h"

namespace sparkle::cpu {
namespace {

std::array<StripValue*, 3> arguments(StripStep& step) { return {&step.x, &step.y, &step.z}; }

// Slots are step numbers until assign_slots().
struct Compiler {
  StripProgram out;
  std::vector<bool> dropped;  // per step

  int uses(int step) {
    int count = 0;
    for (size_t i = 0; i < out.steps.size(); ++i) {
      if (dropped[i]) continue;
      StripStep& user = out.steps[i];
      for (int k = 0; k < arity_of(user.op); ++k) {
        const StripValue& v = *arguments(user)[static_cast<size_t>(k)];
        count += v.kind == StripValue::slot && v.index == step;
      }
    }
    return count;
  }
  StripStep* single_use(const StripValue& v) {
    return v.kind == StripValue::slot && uses(v.index) == 1 ? &out.steps[static_cast<size_t>(v.index)] : nullptr;
  }
};

// relu and clip become bounds of the operation that makes their argument.
void join_clips(Compiler& c, std::vector<StripValue>& renamed) {
  for (size_t i = 0; i < c.out.steps.size(); ++i) {
    StripStep& step = c.out.steps[i];
    for (int k = 0; k < arity_of(step.op); ++k) {
      StripValue& v = *arguments(step)[static_cast<size_t>(k)];
      if (v.kind == StripValue::slot) v = renamed[static_cast<size_t>(v.index)];
    }
    if (step.op != PointwiseOp::relu && step.op != PointwiseOp::clip) continue;
    StripStep* before = c.single_use(step.x);
    if (!before || before->clipped || !can_clip(before->op)) continue;
    before->clipped = true;
    before->low = step.op == PointwiseOp::relu ? 0.0f : step.a;
    before->high = step.op == PointwiseOp::relu ? std::numeric_limits<float>::infinity() : step.b;
    c.dropped[i] = true;
    renamed[i] = step.x;
  }
}

// add(mul(a, b), c) becomes fma(a, b, c) at the place of the sum.
void join_products(Compiler& c) {
  for (StripStep& step : c.out.steps) {
    if (step.op != PointwiseOp::add) continue;
    for (const bool second : {false, true}) {
      const StripValue product = second ? step.y : step.x, other = second ? step.x : step.y;
      StripStep* before = c.single_use(product);
      if (!before || before->op != PointwiseOp::mul || before->clipped) continue;
      step.op = PointwiseOp::fma;
      step.x = before->x, step.y = before->y, step.z = other;
      c.dropped[static_cast<size_t>(product.index)] = true;
      break;
    }
  }
}

// Keeps the steps that are needed and gives each result the first strip whose value is dead. A result may take the strip of an
// argument that dies there: every element is read before it is written.
void assign_slots(Compiler& c, size_t output) {
  std::vector<StripStep>& steps = c.out.steps;
  for (size_t i = steps.size(); i-- > 0;)
    if (i != output && c.uses(static_cast<int>(i)) == 0) c.dropped[i] = true;
  std::vector<size_t> last_use(steps.size(), 0);
  for (size_t i = 0; i < steps.size(); ++i) {
    if (c.dropped[i]) continue;
    for (int k = 0; k < arity_of(steps[i].op); ++k) {
      const StripValue& v = *arguments(steps[i])[static_cast<size_t>(k)];
      if (v.kind == StripValue::slot) last_use[static_cast<size_t>(v.index)] = i;
    }
  }
  std::vector<size_t> free_from;  // per slot: the step from which it may be written again
  std::vector<int> slot_of(steps.size(), 0);
  std::vector<StripStep> kept;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (c.dropped[i]) continue;
    size_t slot = 0;
    while (slot < free_from.size() && free_from[slot] > i) ++slot;
    if (slot == free_from.size()) free_from.push_back(0);
    free_from[slot] = std::max(last_use[i], i + 1);
    slot_of[i] = static_cast<int>(slot);
    StripStep step = steps[i];
    for (StripValue* v : arguments(step))
      if (v->kind == StripValue::slot) v->index = slot_of[static_cast<size_t>(v->index)];
    step.slot = static_cast<int>(slot);
    kept.push_back(step);
  }
  steps = std::move(kept);
  c.out.slots = static_cast<int>(free_from.size());
}

}  // namespace

Result<StripProgram> compile_strips(const PointwiseParams& params, std::string_view unit) {
  const StripFinder find = strip_finder(unit);
  if (!find) {
    return Error{Reason::backend_lacks_variant, "The CPU backend has no pointwise strips for the unit '" + std::string(unit) +
                                                    "'; choose the variant 'plain'."};
  }
  Compiler c;
  std::vector<StripValue> values;
  for (int i = 0; i < params.inputs; ++i) values.push_back({StripValue::operand, i});
  for (const PointwiseInstruction& instruction : params.program) {
    StripStep step;
    step.op = instruction.op;
    step.a = static_cast<float>(instruction.a), step.b = static_cast<float>(instruction.b);
    const int indices[] = {instruction.x, instruction.y, instruction.z};
    for (int k = 0; k < arity_of(step.op); ++k) {
      if (indices[k] < 0 || indices[k] >= static_cast<int>(values.size())) {
        return Error{Reason::bad_shape, "A pointwise program reads value " + std::to_string(indices[k]) +
                                            " before it exists: " + expression(params) + "."};
      }
      *arguments(step)[static_cast<size_t>(k)] = values[static_cast<size_t>(indices[k])];
    }
    if (step.op == PointwiseOp::constant) {
      values.push_back({StripValue::constant, static_cast<int>(c.out.constants.size())});
      c.out.constants.push_back(step.a);
      continue;
    }
    if (step.op == PointwiseOp::identity) {
      values.push_back(step.x);
      continue;
    }
    // A square is a product; other powers go through the C library.
    if (step.op == PointwiseOp::pow && step.y.kind == StripValue::constant &&
        c.out.constants[static_cast<size_t>(step.y.index)] == 2.0f) {
      step.op = PointwiseOp::mul;
      step.y = step.x;
    }
    values.push_back({StripValue::slot, static_cast<int>(c.out.steps.size())});
    c.out.steps.push_back(step);
  }
  if (params.program.empty()) return Error{Reason::bad_shape, "A pointwise program has no instruction."};
  // The output is the last value: where that is no fresh result, a copy makes it one.
  const StripValue result = values.back();
  if (result.kind != StripValue::slot || result.index + 1 != static_cast<int>(c.out.steps.size())) {
    StripStep copy;
    copy.x = result;
    c.out.steps.push_back(copy);
  }
  c.dropped.assign(c.out.steps.size(), false);
  std::vector<StripValue> renamed;
  for (size_t i = 0; i < c.out.steps.size(); ++i) renamed.push_back({StripValue::slot, static_cast<int>(i)});
  join_products(c);
  join_clips(c, renamed);
  assign_slots(c, static_cast<size_t>(renamed.back().index));
  for (StripStep& step : c.out.steps) step.function = find(step.op, step.clipped);
  return std::move(c.out);
}

}  // namespace sparkle::cpu
