// Element-wise operators and normalisations: what a channel of zeros becomes.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "fix/pad/walk.h"
#include "graph/evaluate/values.h"

namespace sparkle::fix {
namespace {

// f(0) = 0, and finite for finite constants.
const std::set<std::string> kKeepZero{"Relu",   "LeakyRelu", "Elu",  "Selu", "Celu",  "ThresholdedRelu", "Tanh",     "Erf",
                                      "Abs",    "Neg",       "Sin",  "Sign", "Ceil",  "Floor",           "Round",    "Gelu",
                                      "Mish",   "HardSwish", "Atan", "Sinh", "Asinh", "Softsign",        "Identity", "Swish",
                                      "Dropout"};
// f(0) is another finite constant.
const std::set<std::string> kFinite{"Sigmoid", "HardSigmoid", "Softplus", "Cos"};

void one_input(Walk& w) {
  const auto* x = w.axis(0);
  if (!x) return;
  const std::string& type = w.node().op_type();
  for (int i = 1; i < w.inputs(); ++i)
    if (w.given(i) && !w.constant(i)) return w.block(0);
  if (w.used(1)) return w.block(0);  // Dropout's mask
  PadPlan::Axis y = *x;
  if (kFinite.contains(type)) y.zero = false;
  w.set(y);
}

// Exp and Sqrt of zero are finite, of other constants perhaps not.
void zero_alone(Walk& w) {
  const auto* x = w.axis(0);
  if (!x) return;
  if (!x->zero) return w.block(0);
  PadPlan::Axis y = *x;
  y.zero = w.node().op_type() == "Sqrt";
  w.set(y);
}

void cast(Walk& w) {
  if (const auto* x = w.axis(0)) w.set(*x);
}

void clip(Walk& w) {
  const auto* x = w.axis(0);
  if (!x) return;
  PadPlan::Axis y = *x;
  double low = float_attribute(w.node(), "min", -INFINITY), high = float_attribute(w.node(), "max", INFINITY);
  for (int i = 1; i < w.inputs() && i < 3; ++i) {
    if (!w.given(i)) continue;
    const auto bound = w.value(i);
    if (!bound || bound->elements() != 1) return w.block(0);
    (i == 1 ? low : high) = as_doubles(*bound)[0];
  }
  y.zero = y.zero && low <= 0 && high >= 0;
  if (std::isnan(low) || std::isnan(high)) return w.block(0);
  w.set(y);
}

// What an input of an element-wise operator has on the channel axis, counted from the end.
struct Operand {
  const PadPlan::Axis* axis = nullptr;
  int from_end = 0;
  int64_t size = 1;  // on that axis
  bool constant = false;
};

// All that broadcasts against one channel axis; nothing where they cannot grow together.
bool aligned(Walk& w, std::vector<Operand>& operands, int& from_end) {
  from_end = 0;
  for (int i = 0; i < w.inputs(); ++i) {
    Operand o;
    o.constant = w.constant(i);
    if ((o.axis = w.axis(i))) {
      o.from_end = w.shape(i).size() - o.axis->axis;
      if (from_end != 0 && from_end != o.from_end) return false;
      from_end = o.from_end;
    }
    operands.push_back(o);
  }
  if (from_end == 0) return false;
  int64_t most = 1;
  for (int i = 0; i < w.inputs(); ++i) {
    const Dims s = w.shape(i);
    Operand& o = operands[static_cast<size_t>(i)];
    o.size = s.size() >= from_end ? s[s.size() - from_end] : 1;
    most = std::max(most, o.size);
  }
  for (const Operand& o : operands) {
    if (o.axis && o.size != most) return false;                              // one channel for many
    if (!o.axis && !o.constant && (o.size != 1 || most == 1)) return false;  // channels that do not grow
    if (o.constant && most == 1) return false;
  }
  return true;
}

bool finite(const HostTensor& t) {
  const auto values = as_doubles(t);
  return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

void many_inputs(Walk& w) {
  const std::string& type = w.node().op_type();
  std::vector<Operand> operands;
  int from_end = 0;
  if (!aligned(w, operands, from_end)) return w.block_all();
  const bool mul = type == "Mul", div = type == "Div", pow = type == "Pow", slope = type == "PRelu";
  if ((div || pow) && operands[1].axis) return w.block_all();  // 0 / 0
  if (pow && !(operands[1].constant && operands[0].axis->zero)) return w.block_all();
  if (int_attribute(w.node(), "broadcast", 0) != 0 && w.opset() < 7) return w.block_all();
  bool all_zero = true, any_zero = false;
  const PadPlan::Axis* first = nullptr;
  for (const Operand& o : operands) {
    if (o.axis) {
      if (first && !w.plan.channels.unify(first->runs, o.axis->runs)) return w.block_all();
      if (!first) first = o.axis;
      all_zero = all_zero && o.axis->zero;
      any_zero = any_zero || o.axis->zero;
    }
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    const Operand& o = operands[i];
    if (o.axis) continue;
    const int input = static_cast<int>(i);
    if (o.constant) {
      const auto value = w.value(input);
      if (!value || !finite(*value)) return w.block_all();  // 0 * infinity
      const auto values = as_doubles(*value);
      if (div || pow)
        for (double v : values)
          if (!(pow ? v > 0 : std::abs(v) > 1e-30)) return w.block_all();
      if (o.size > 1) {
        w.edit(input, w.shape(input).size() - from_end, first->runs, div || pow ? 1 : 0);
        any_zero = true;
      } else if (!div && !pow && !slope) {
        all_zero = all_zero && std::all_of(values.begin(), values.end(), [](double v) { return v == 0; });
      }
    } else if (!slope) {
      all_zero = all_zero && (mul || div);  // one value for all channels is added
    }
  }
  PadPlan::Axis y{w.out_shape().size() - from_end, first->runs, true};
  y.zero = mul ? any_zero : div || pow || slope ? operands[0].axis && operands[0].axis->zero : all_zero;
  w.set(y);
}

void batch_normalization(Walk& w) {
  const auto* x = w.axis(0);
  bool known = !w.used(1);
  for (int i = 1; i < 5; ++i) known = known && w.constant(i);
  if (!x || x->axis != 1 || !known || int_attribute(w.node(), "training_mode", 0) != 0) return w.block_all();
  for (int i = 1; i < 5; ++i) w.edit(i, 0, x->runs, i == 4 ? 1 : 0);
  w.set({1, x->runs, true});
}

// The mean and the variance of zeros are zero, and so is what comes of them.
void instance_normalization(Walk& w) {
  const auto* x = w.axis(0);
  if (!x || x->axis != 1 || !x->zero || !w.constant(1) || !w.constant(2) || float_attribute(w.node(), "epsilon", 1e-5) <= 0)
    return w.block_all();
  w.edit(1, 0, x->runs);
  w.edit(2, 0, x->runs);
  w.set(*x);
}

// Sums of squares over neighbours: beyond the last channel zeros stand for what is not there, between others they would not.
void local_response(Walk& w) {
  const auto* x = w.axis(0);
  if (!x || x->axis != 1 || !x->zero) return w.block_all();
  w.grow_at_end(x->runs);
  w.set(*x);
}

int64_t positive(int64_t axis, int rank) { return axis < 0 ? axis + rank : axis; }

// Sums of exponentials run along their axis alone; before opset 13 along all axes from there on.
void softmax(Walk& w) {
  const auto* x = w.axis(0);
  if (!x) return;
  const bool to_the_end = w.opset() < 13;
  const int64_t axis = positive(int_attribute(w.node(), "axis", to_the_end ? 1 : -1), w.shape(0).size());
  if (x->axis == axis || (to_the_end && x->axis >= axis)) return w.block(0);
  w.set({x->axis, x->runs, false});
}

void layer_normalization(Walk& w) {
  const auto* x = w.axis(0);
  if (!x) return;
  const int64_t axis = positive(int_attribute(w.node(), "axis", -1), w.shape(0).size());
  if (x->axis >= axis || w.used(1) || float_attribute(w.node(), "epsilon", 1e-5) <= 0) return w.block_all();
  w.set({x->axis, x->runs, false});
}

}  // namespace

Rule element_rule(const std::string& type) {
  if (kKeepZero.contains(type) || kFinite.contains(type)) return one_input;
  static const std::map<std::string, Rule> kRules{{"Exp", zero_alone},
                                                  {"Sqrt", zero_alone},
                                                  {"Cast", cast},
                                                  {"Clip", clip},
                                                  {"Add", many_inputs},
                                                  {"Sub", many_inputs},
                                                  {"Mul", many_inputs},
                                                  {"Div", many_inputs},
                                                  {"Pow", many_inputs},
                                                  {"PRelu", many_inputs},
                                                  {"Sum", many_inputs},
                                                  {"BatchNormalization", batch_normalization},
                                                  {"InstanceNormalization", instance_normalization},
                                                  {"LRN", local_response},
                                                  {"Softmax", softmax},
                                                  {"LogSoftmax", softmax},
                                                  {"LayerNormalization", layer_normalization}};
  const auto at = kRules.find(type);
  return at == kRules.end() ? nullptr : at->second;
}

}  // namespace sparkle::fix
