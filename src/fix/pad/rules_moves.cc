// Operators that move channels or gather along other axes: pools, concatenations, slices, shapes.
#include <algorithm>
#include <map>

#include "fix/pad/walk.h"
#include "graph/evaluate/values.h"

namespace sparkle::fix {
namespace {

int64_t positive(int64_t axis, int rank) { return axis < 0 ? axis + rank : axis; }

void pool(Walk& w) {
  const auto* x = w.axis(0);
  if (!x) return;
  if (x->axis != 1 || w.used(1)) return w.block(0);  // positions count through the padded tensor
  w.set(*x);
}

void concat(Walk& w) {
  const int rank = w.out_shape().size();
  const int64_t axis = positive(int_attribute(w.node(), "axis", 1), rank);
  int channel_axis = -1;
  bool same = true, zero = true;
  for (int i = 0; i < w.inputs(); ++i)
    if (const auto* x = w.axis(i)) {
      same = same && (channel_axis < 0 || channel_axis == x->axis);
      channel_axis = x->axis;
      zero = zero && x->zero;
    }
  if (channel_axis < 0) return;
  if (!same) return w.block_all();
  Runs list;
  for (int i = 0; i < w.inputs(); ++i) {
    const auto* x = w.axis(i);
    if (channel_axis == axis) {
      const int64_t size = w.shape(i)[channel_axis];
      if (size == 0) continue;
      const Runs part = x ? x->runs : w.plan.channels.add(size, input_of(w.node(), i), true);
      list.insert(list.end(), part.begin(), part.end());
    } else if (!x || !w.plan.channels.unify(w.axis(i)->runs, list.empty() ? x->runs : list)) {
      return w.block_all();
    } else if (list.empty()) {
      list = x->runs;
    }
  }
  w.set({channel_axis, list, zero});
}

void split(Walk& w) {
  const auto* x = w.axis(0);
  if (!x) return;
  const PadPlan::Axis in = *x;
  const int64_t axis = positive(int_attribute(w.node(), "axis", 0), w.shape(0).size());
  if (axis != in.axis) {
    for (int o = 0; o < w.node().output_size(); ++o)
      if (w.used(o)) w.set(in, o);
    return;
  }
  if (w.given(1) && !w.constant(1)) return w.block(0);
  std::vector<Runs> parts;
  int64_t at = 0;
  for (int o = 0; o < w.node().output_size(); ++o) {
    if (!w.used(o)) return w.block(0);
    const int64_t size = w.out_shape(o)[in.axis];
    parts.push_back(w.plan.channels.part(in.runs, at, at + size));
    if (parts.back().empty()) return w.block(0);
    at += size;
  }
  for (size_t o = 0; o < parts.size(); ++o) w.set({in.axis, parts[o], in.zero}, static_cast<int>(o));
  w.plan.splits.push_back({w.at(), parts});
}

void slice(Walk& w) {
  const auto* x = w.axis(0);
  if (!x) return;
  const PadPlan::Axis in = *x;
  const bool by_attributes = w.opset() < 10;
  const auto list = [&](int input, const char* name) {
    return by_attributes ? ints_attribute(w.node(), name) : w.integers(input);
  };
  const auto starts = list(1, "starts"), ends = list(2, "ends");
  auto axes = list(3, "axes");
  if (!starts || !ends || (!by_attributes && w.given(3) && !axes)) return w.block(0);
  if (!axes) {
    axes.emplace();
    for (size_t i = 0; i < starts->size(); ++i) axes->push_back(static_cast<int64_t>(i));
  }
  const auto steps = by_attributes ? std::nullopt : w.integers(4);
  if (!by_attributes && w.given(4) && !steps) return w.block(0);
  for (size_t i = 0; i < axes->size() && i < starts->size(); ++i) {
    if (positive((*axes)[i], w.shape(0).size()) != in.axis) continue;
    const int64_t size = w.shape(0)[in.axis];
    const auto bound = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + size : v, 0, size); };
    const int64_t begin = bound((*starts)[i]), end = bound((*ends)[i]);
    if ((steps && (*steps)[i] != 1) || begin >= end) return w.block(0);
    const Runs inside = w.plan.channels.part(in.runs, begin, end);
    const Runs before = begin > 0 ? w.plan.channels.part(in.runs, 0, begin) : Runs();
    if (inside.empty() || (begin > 0 && before.empty())) return w.block(0);
    w.plan.slices.push_back({w.at(), static_cast<int>(i), before, inside});
    return w.set({in.axis, inside, in.zero});
  }
  w.set(in);
}

// Zeros along the channels join the list as runs of their own: the shortcuts of ResNets without weights.
void pad(Walk& w) {
  const auto* x = w.axis(0);
  if (!x) return;
  PadPlan::Axis y = *x;
  const int rank = w.shape(0).size();
  const auto amounts = w.opset() < 11 ? ints_attribute(w.node(), "pads") : w.integers(1);
  if (!amounts || static_cast<int>(amounts->size()) != 2 * rank || w.given(3)) return w.block(0);
  const bool constant = text_attribute(w.node(), "mode", "constant") == "constant";
  double value = float_attribute(w.node(), "value", 0);
  if (w.given(2)) {
    const auto given = w.value(2);
    if (!given || given->elements() != 1) return w.block(0);
    value = as_doubles(*given)[0];
  }
  const int64_t begin = (*amounts)[static_cast<size_t>(y.axis)], end = (*amounts)[static_cast<size_t>(y.axis + rank)];
  y.zero = y.zero && (!constant || value == 0);
  if (begin == 0 && end == 0) return w.set(y);
  if (!constant || begin < 0 || end < 0) return w.block(0);
  PadPlan::PadEdit edit{w.at(), y.axis, rank, {}, {}};
  if (begin > 0) edit.begin = w.plan.channels.add(begin, w.label(), false);
  if (end > 0) edit.end = w.plan.channels.add(end, w.label(), false);
  Runs list = edit.begin;
  list.insert(list.end(), y.runs.begin(), y.runs.end());
  list.insert(list.end(), edit.end.begin(), edit.end.end());
  w.plan.pads.push_back(edit);
  w.set({y.axis, list, y.zero});
}

void transpose(Walk& w) {
  const auto* x = w.axis(0);
  if (!x) return;
  PadPlan::Axis y = *x;
  const int rank = w.shape(0).size();
  const auto order = ints_attribute(w.node(), "perm");
  for (int a = 0; a < rank; ++a)
    if ((order ? (*order)[static_cast<size_t>(a)] : rank - 1 - a) == x->axis) y.axis = a;
  w.set(y);
}

// Where an axis goes when shapes change: kept, merged with neighbours, or parted into equal heads.
std::optional<PadPlan::Axis> reshaped(Walk& w, const PadPlan::Axis& x, const Dims& from, const Dims& to) {
  const int64_t size = from[x.axis];
  if (size <= 1) return std::nullopt;
  int64_t outer = 1, inner = 1;
  for (int a = 0; a < x.axis; ++a) outer *= from[a];
  for (int a = x.axis + 1; a < from.size(); ++a) inner *= from[a];
  for (int j = 0; j < to.size(); ++j) {
    int64_t before = 1, behind = 1;
    for (int a = 0; a < j; ++a) before *= to[a];
    for (int a = j + 1; a < to.size(); ++a) behind *= to[a];
    if (before <= 0 || behind <= 0 || to[j] <= 0) return std::nullopt;
    // Heads: this axis and the next are parts of the channels.
    if (j + 1 < to.size() && before == outer && to[j] * to[j + 1] == size && behind / to[j + 1] == inner && to[j] > 1 &&
        to[j + 1] > 1) {
      const Runs head = w.plan.channels.repeated(x.runs, to[j]);
      if (head.empty()) return std::nullopt;
      w.plan.heads.push_back({w.label(), to[j], to[j + 1], head});
      return PadPlan::Axis{j + 1, head, x.zero};
    }
    // Kept, or merged with axes outside (copies of the list) and inside (channels that are wider).
    if (outer % before != 0 || inner % behind != 0 || to[j] < size) continue;
    const int64_t copies = outer / before, wide = inner / behind;
    if (to[j] != copies * size * wide) continue;
    Runs list;
    for (int64_t c = 0; c < copies; ++c)
      for (const Run& run : x.runs) list.push_back({run.id, run.inner * wide});
    return PadPlan::Axis{j, list, x.zero};
  }
  return std::nullopt;
}

void reshape(Walk& w) {
  const auto* x = w.axis(0);
  if (!x) return;
  const bool reshapes = w.node().op_type() == "Reshape";
  if (reshapes && w.opset() < 5) return w.block(0);
  if (w.inputs() > 1 && !w.constant(1)) return w.pin(0);  // the target may be made of the padded shape
  const auto y = reshaped(w, *x, w.shape(0), w.out_shape());
  if (!y) return w.block(0);
  if (reshapes) w.plan.sizes.push_back({w.at(), 1, y->axis, y->runs});
  w.set(*y);
}

void reduce(Walk& w) {
  const auto* x = w.axis(0);
  if (!x) return;
  const std::string& type = w.node().op_type();
  auto axes = ints_attribute(w.node(), "axes");
  if (w.given(1) && !(axes = w.integers(1))) return w.block(0);
  const int rank = w.shape(0).size();
  if (!axes || axes->empty()) return w.block(0);
  const bool sums = type == "ReduceSum" || type == "ReduceL1" || type == "ReduceL2" || type == "ReduceSumSquare";
  int lost = 0;
  for (int64_t a : *axes) {
    if (positive(a, rank) == x->axis) {
      if (sums && x->zero) return;  // zeros more
      return w.block(0);
    }
    lost += positive(a, rank) < x->axis;
  }
  const bool keeps = int_attribute(w.node(), "keepdims", 1) != 0;
  w.set({x->axis - (keeps ? 0 : lost), x->runs, x->zero});
}

void resize(Walk& w) {
  const auto* x = w.axis(0);
  if (!x) return;
  const bool scales_second = w.node().op_type() == "Upsample" || w.opset() < 11;
  const auto axes = ints_attribute(w.node(), "axes");
  if (text_attribute(w.node(), "coordinate_transformation_mode", "") == "tf_crop_and_resize") return w.block(0);
  if (axes) {
    for (int64_t a : *axes)
      if (positive(a, w.shape(0).size()) == x->axis) return w.block(0);
    return w.set(*x);
  }
  const int scales = scales_second ? 1 : 2;
  if (!scales_second && w.given(3)) {
    const auto sizes = w.integers(3);
    if (!sizes || (*sizes)[static_cast<size_t>(x->axis)] != w.shape(0)[x->axis]) return w.pin(0);
    w.plan.sizes.push_back({w.at(), 3, x->axis, x->runs});
    return w.set(*x);
  }
  if (w.node().op_type() == "Upsample" && w.opset() < 9) return w.block(0);
  const auto factors = w.value(scales);
  if (!factors || factors->elements() != w.shape(0).size() || as_doubles(*factors)[static_cast<size_t>(x->axis)] != 1)
    return w.block(0);
  w.set(*x);
}

}  // namespace

Rule move_rule(const std::string& type) {
  static const std::map<std::string, Rule> kRules{{"MaxPool", pool},        {"AveragePool", pool},
                                                  {"LpPool", pool},         {"GlobalAveragePool", pool},
                                                  {"GlobalMaxPool", pool},  {"GlobalLpPool", pool},
                                                  {"Concat", concat},       {"Split", split},
                                                  {"Slice", slice},         {"Pad", pad},
                                                  {"Transpose", transpose}, {"Reshape", reshape},
                                                  {"Flatten", reshape},     {"Squeeze", reshape},
                                                  {"Unsqueeze", reshape},   {"ReduceMean", reduce},
                                                  {"ReduceSum", reduce},    {"ReduceMax", reduce},
                                                  {"ReduceMin", reduce},    {"ReduceL1", reduce},
                                                  {"ReduceL2", reduce},     {"ReduceSumSquare", reduce},
                                                  {"Resize", resize},       {"Upsample", resize}};
  const auto at = kRules.find(type);
  return at == kRules.end() ? nullptr : at->second;
}

}  // namespace sparkle::fix
