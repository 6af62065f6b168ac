#include "plan/fuse/fuse.h"

#include <algorithm>

#include "families/pointwise/arithmetic.h"
#include "families/values/post_ops.h"
#include "families/type_set.h"

namespace sparkle {
namespace {

constexpr size_t kMostOperands = 8, kLongestProgram = 24;

struct Uses {
  std::vector<int> count;   // readers of each tensor; a graph output counts as one
  std::vector<int> reader;  // the last reader's op, -1 for none
  explicit Uses(const Graph& graph) : count(graph.tensors.size(), 0), reader(graph.tensors.size(), -1) {
    for (size_t i = 0; i < graph.ops.size(); ++i)
      for (TensorId id : graph.ops[i].inputs)
        if (id != kAbsent) ++count[static_cast<size_t>(id)], reader[static_cast<size_t>(id)] = static_cast<int>(i);
    for (TensorId id : graph.outputs) count[static_cast<size_t>(id)] += 2;
  }
  // The only reader of a tensor that nothing else needs, or -1.
  int only_reader(TensorId id) const { return count[static_cast<size_t>(id)] == 1 ? reader[static_cast<size_t>(id)] : -1; }
};

const PointwiseNode* pointwise(const Graph& graph, int op) {
  return op < 0 ? nullptr : std::get_if<PointwiseNode>(&graph.ops[static_cast<size_t>(op)].params);
}

bool as_activation(const PointwiseNode& node, Epilogue& epilogue) {
  Activation activation;
  if (arity_of(node.op) != 1 || !parse_name(name_of(node.op), activation)) return false;
  epilogue.activation = activation;
  epilogue.a = node.a;
  epilogue.b = node.b;
  return true;
}

// Residuals an epilogue has room for: the matrix that a Gemm adds is one already.
size_t room_for_residuals(const Op& anchor) {
  const bool adds_matrix = std::holds_alternative<MatMulOp>(anchor.params) && anchor.inputs.size() > 2;
  return adds_matrix ? 1 : 2;
}

// Takes the reader of the group's output into the epilogue, if it fits there.
bool absorb(const Graph& graph, const Uses& uses, const std::vector<bool>& taken, Group& group) {
  const int reader = uses.only_reader(group.output);
  const PointwiseNode* node = pointwise(graph, reader);
  if (!node || taken[static_cast<size_t>(reader)]) return false;
  const Op& op = graph.ops[static_cast<size_t>(reader)];
  const GraphTensor& result = graph.tensor(op.outputs[0]);
  // Epilogues compute as their anchor does: floats only, of one type.
  const GraphTensor& sum = graph.tensor(group.output);
  if (!is_float(result.dtype) || result.dtype != sum.dtype || !(result.shape == sum.shape)) return false;
  Epilogue& e = group.epilogue;
  const size_t room = room_for_residuals(graph.ops[static_cast<size_t>(group.anchor)]);
  if (node->op == PointwiseOp::add) {
    const TensorId other = op.inputs[0] == group.output ? op.inputs[1] : op.inputs[0];
    if (!(graph.tensor(other).shape == result.shape) || group.residuals.size() >= room) return false;
    ++(e.activation == Activation::none ? e.residuals_before : e.residuals_after);
    group.residuals.push_back(other);
  } else {
    if (e.activation != Activation::none || e.residuals_after > 0 || !as_activation(*node, e)) return false;
  }
  group.ops.push_back(reader);
  group.output = op.outputs[0];
  return true;
}

bool is_anchor(const Op& op) {
  return std::holds_alternative<ConvOp>(op.params) || std::holds_alternative<MatMulOp>(op.params);
}

// Adds `op` to a program, taking in the programs of its inputs where nothing else reads them.
Group pointwise_group(const Graph& graph, const Uses& uses, std::vector<Group>& groups, std::vector<int>& group_of, int index) {
  const Op& op = graph.ops[static_cast<size_t>(index)];
  const PointwiseNode& node = std::get<PointwiseNode>(op.params);
  const GraphTensor& result = graph.tensor(op.outputs[0]);
  Group merged;
  merged.output = op.outputs[0];
  std::vector<DType> types;
  for (TensorId id : op.inputs) types.push_back(graph.tensor(id).dtype);
  merged.arithmetic = pointwise_arithmetic(types, result.dtype);
  // First the operands of everything merged, then the instructions; values are renumbered as they come.
  struct Part {
    int group;  // -1: a plain operand
    TensorId tensor;
  };
  std::vector<Part> parts;
  size_t operands = 0, length = 1;
  for (TensorId id : op.inputs) {
    Part part{-1, id};
    const int producer = group_of[static_cast<size_t>(id)];
    if (producer >= 0 && uses.only_reader(id) == index && graph.tensor(id).shape == result.shape) {
      const Group& g = groups[static_cast<size_t>(producer)];
      if (g.anchor < 0 && !g.program.program.empty() && g.arithmetic == merged.arithmetic &&
          operands + g.operands.size() + 2 <= kMostOperands && length + g.program.program.size() <= kLongestProgram) {
        part.group = producer;
        operands += g.operands.size();
        length += g.program.program.size();
      }
    }
    if (part.group < 0) ++operands;
    parts.push_back(part);
  }
  const auto operand = [&](TensorId id) {
    const auto at = std::find(merged.operands.begin(), merged.operands.end(), id);
    if (at != merged.operands.end()) return static_cast<int>(at - merged.operands.begin());
    merged.operands.push_back(id);
    return static_cast<int>(merged.operands.size()) - 1;
  };
  for (const Part& part : parts) {
    if (part.group < 0) {
      operand(part.tensor);
    } else {
      for (TensorId id : groups[static_cast<size_t>(part.group)].operands) operand(id);
    }
  }
  merged.program.inputs = static_cast<int>(merged.operands.size());
  int arguments[3] = {0, 0, 0};
  for (size_t i = 0; i < parts.size() && i < 3; ++i) {
    if (parts[i].group < 0) {
      arguments[i] = operand(parts[i].tensor);
      continue;
    }
    Group& g = groups[static_cast<size_t>(parts[i].group)];
    const int base = static_cast<int>(merged.program.program.size()) + merged.program.inputs;
    for (PointwiseInstruction step : g.program.program) {
      for (int* value : {&step.x, &step.y, &step.z})
        *value =
            *value < g.program.inputs ? operand(g.operands[static_cast<size_t>(*value)]) : *value - g.program.inputs + base;
      merged.program.program.push_back(step);
    }
    arguments[i] = merged.program.inputs + static_cast<int>(merged.program.program.size()) - 1;
    merged.ops.insert(merged.ops.end(), g.ops.begin(), g.ops.end());
    g.ops.clear();  // swallowed
  }
  merged.program.program.push_back({node.op, arguments[0], arguments[1], arguments[2], node.a, node.b});
  merged.ops.push_back(index);
  std::sort(merged.ops.begin(), merged.ops.end());
  return merged;
}

// Whether a program can run inside the kernel that makes `sum`: element for element, and in its type.
bool follows(const Graph& graph, const Group& program, TensorId sum) {
  const GraphTensor &from = graph.tensor(sum), &to = graph.tensor(program.output);
  return program.anchor < 0 && can_be_post_op(program.program) && program.arithmetic == DType::f32 && is_float(from.dtype) &&
         computed_in(from.dtype) == DType::f32 && to.dtype == from.dtype && to.shape == from.shape &&
         std::all_of(
             program.operands.begin(), program.operands.end(),
             [&](TensorId id) { return graph.tensor(id).dtype == from.dtype; });
}

// The anchor's group with the program behind it: operand 0 is the sum, the others keep their order.
void join(Group& anchor, Group& program) {
  const TensorId sum = anchor.output;
  const auto at = static_cast<int>(std::find(program.operands.begin(), program.operands.end(), sum) - program.operands.begin());
  PointwiseParams post_op = program.program;
  for (PointwiseInstruction& step : post_op.program) {
    int left = arity_of(step.op);
    for (int* value : {&step.x, &step.y, &step.z}) {
      if (--left < 0) *value = 0;
      else if (*value <= at) *value = *value == at ? 0 : *value + 1;
    }
  }
  anchor.epilogue.post_op = std::move(post_op);
  for (TensorId id : program.operands)
    if (id != sum) anchor.behind.push_back(id);
  anchor.ops.insert(anchor.ops.end(), program.ops.begin(), program.ops.end());
  std::sort(anchor.ops.begin(), anchor.ops.end());
  anchor.output = program.output;
  program.ops.clear();
}

// Pointwise groups that alone read an anchor's result become its post-op. Where two anchors meet in one the later one takes it.
void take_post_ops(const Graph& graph, const Uses& uses, const PostOpRules& rules, std::vector<Group>& groups) {
  std::vector<int> group_of(graph.ops.size(), -1);
  for (size_t g = 0; g < groups.size(); ++g)
    for (int op : groups[g].ops) group_of[static_cast<size_t>(op)] = static_cast<int>(g);
  for (size_t g = groups.size(); g-- > 0;) {
    Group& anchor = groups[g];
    const int reader = anchor.anchor < 0 ? -1 : uses.reader[static_cast<size_t>(anchor.output)];
    if (reader < 0 || rules.apart.contains(anchor.anchor)) continue;
    Group& program = groups[static_cast<size_t>(group_of[static_cast<size_t>(reader)])];
    int within = 0;
    for (int op : program.ops)
      for (TensorId id : graph.ops[static_cast<size_t>(op)].inputs) within += id == anchor.output;
    if (within == 0 || within != uses.count[static_cast<size_t>(anchor.output)]) continue;
    if (follows(graph, program, anchor.output)) join(anchor, program);
  }
}

}  // namespace

std::vector<Group> fuse(const Graph& graph, bool enabled, const PostOpRules& post_ops) {
  const Uses uses(graph);
  std::vector<bool> taken(graph.ops.size(), false);
  std::vector<Group> groups;
  // Anchors from the last to the first: where two sums meet in an addition the later one takes it, the earlier one's result is
  // ready.
  for (int i = static_cast<int>(graph.ops.size()) - 1; i >= 0; --i) {
    const Op& op = graph.ops[static_cast<size_t>(i)];
    if (!is_anchor(op)) continue;
    Group group;
    group.anchor = i;
    group.ops = {i};
    group.output = op.outputs[0];
    while (enabled && absorb(graph, uses, taken, group)) taken[static_cast<size_t>(group.ops.back())] = true;
    taken[static_cast<size_t>(i)] = true;
    groups.push_back(std::move(group));
  }
  std::vector<int> group_of(graph.tensors.size(), -1);  // tensor -> the pointwise group that makes it
  for (int i = 0; i < static_cast<int>(graph.ops.size()); ++i) {
    if (taken[static_cast<size_t>(i)]) continue;
    const Op& op = graph.ops[static_cast<size_t>(i)];
    if (pointwise(graph, i)) {
      if (!enabled) std::fill(group_of.begin(), group_of.end(), -1);
      groups.push_back(pointwise_group(graph, uses, groups, group_of, i));
    } else {
      Group group;
      group.ops = {i};
      group.output = op.outputs.empty() ? kAbsent : op.outputs[0];
      groups.push_back(std::move(group));
    }
    if (groups.back().output != kAbsent)
      group_of[static_cast<size_t>(groups.back().output)] = static_cast<int>(groups.size()) - 1;
  }
  const auto settle = [&] {
    std::erase_if(groups, [](const Group& g) { return g.ops.empty(); });
    std::sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) { return a.ops.back() < b.ops.back(); });
  };
  settle();
  if (!enabled || !post_ops.taken) return groups;
  take_post_ops(graph, uses, post_ops, groups);
  settle();
  return groups;
}

}  // namespace sparkle
