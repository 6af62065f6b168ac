#include "graph/parts/cut.h"

#include <algorithm>
#include <map>
#include <set>

#include "graph/rewrites/editor.h"

namespace sparkle {
namespace {

class Cutter {
 public:
  explicit Cutter(Graph& graph)
      : g_(graph), ready_(graph.tensors.size(), 0), made_(graph.tensors.size(), -1), data_(graph.tensors.size(), false) {
    for (TensorId id : graph.inputs) data_[at(id)] = true;
  }

  CutGraph cut() {
    for (Op& op : g_.ops) place(op);
    CutGraph result;
    result.inputs = g_.inputs, result.outputs = g_.outputs;
    result.tensors = g_.tensors.size();
    for (TensorId id : g_.outputs) {
      const GraphTensor& t = g_.tensor(id);
      GraphTensor& declared = result.declared.emplace_back();
      declared.name = t.name, declared.dtype = t.dtype, declared.shape = t.shape;
    }
    for (auto& [level, ops] : plain_) note_readers(ops, level);
    for (auto& [level, ops] : host_) note_readers(ops, -1);
    for (TensorId id : g_.outputs) readers_[at(id)].insert(-1);
    std::set<int> levels;
    for (auto& [level, ops] : plain_) levels.insert(level);
    for (auto& [level, ops] : host_) levels.insert(level);
    for (int level : levels) {
      if (const auto ops = plain_.find(level); ops != plain_.end()) result.steps.emplace_back(part(level, ops->second));
      if (const auto ops = host_.find(level); ops != host_.end())
        for (Op* op : ops->second) result.steps.emplace_back(host(*op, result));
    }
    for (TensorId id : g_.outputs) take_constant(id, result);
    find_last(result);
    return result;
  }

 private:
  static size_t at(TensorId id) { return static_cast<size_t>(id); }

  void place(Op& op) {
    int level = 0;
    bool of_data = std::holds_alternative<HostOp>(op.params);
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      const TensorId id = op.inputs[i];
      if (id == kAbsent || g_.tensor(id).constant) continue;
      level = std::max(level, ready_[at(id)]);
      of_data = of_data || data_[at(id)];
      if (decides_by_value(op.params, i) && data_[at(id)] && made_[at(id)] >= 0) level = std::max(level, made_[at(id)] + 1);
    }
    if (std::holds_alternative<ShapeOp>(op.params) || std::holds_alternative<SizeOp>(op.params)) of_data = false;
    const bool host = std::holds_alternative<HostOp>(op.params);
    const bool open = std::holds_alternative<NonMaxSuppressionOp>(op.params);  // the host counts its rows
    for (TensorId id : op.outputs) {
      if (id == kAbsent) continue;
      ready_[at(id)] = level + (host || open ? 1 : 0);
      made_[at(id)] = host || open ? -1 : level;
      data_[at(id)] = of_data;
    }
    (host ? host_ : plain_)[level].push_back(&op);
  }

  // Which operators read each tensor: by level for plain ones, -1 for the host and the model's outputs.
  void note_readers(const std::vector<Op*>& ops, int level) {
    for (Op* op : ops)
      for (TensorId id : op->inputs)
        if (id != kAbsent) readers_[at(id)].insert(level);
  }

  PlannedPart part(int level, const std::vector<Op*>& ops) {
    PlannedPart result;
    Graph& graph = result.graph;
    graph.name = g_.name, graph.opset = g_.opset, graph.folding = g_.folding;
    std::map<TensorId, TensorId> here;
    std::set<TensorId> makes;
    for (Op* op : ops)
      for (TensorId id : op->outputs)
        if (id != kAbsent) makes.insert(id);
    const auto map = [&](TensorId id) {
      if (id == kAbsent) return kAbsent;
      if (const auto known = here.find(id); known != here.end()) return known->second;
      GraphTensor tensor = g_.tensor(id);
      const bool given = !makes.contains(id) && !tensor.constant;
      if (given) {
        const bool of_model = std::find(g_.inputs.begin(), g_.inputs.end(), id) != g_.inputs.end();
        if (!of_model || !tensor.rank_known)
          tensor.known = tensor.rank_known = false, tensor.shape = {}, tensor.axis_names = {};
      }
      const TensorId inside = graph.add(std::move(tensor));
      here.emplace(id, inside);
      if (given) graph.inputs.push_back(inside), result.inputs.push_back(id);
      return inside;
    };
    for (Op* op : ops) {
      Op copy = *op;
      for (TensorId& id : copy.inputs) id = map(id);
      for (TensorId& id : copy.outputs) id = map(id);
      graph.ops.push_back(std::move(copy));
    }
    for (Op* op : ops)
      for (TensorId id : op->outputs) {
        if (id == kAbsent) continue;
        const auto& readers = readers_[at(id)];
        if (std::any_of(readers.begin(), readers.end(), [&](int reader) { return reader != level; }))
          graph.outputs.push_back(map(id)), result.outputs.push_back(id);
      }
    return result;
  }

  void take_constant(TensorId id, CutGraph& result) {
    if (id != kAbsent && g_.tensor(id).constant) result.constants.emplace_back(id, *g_.tensor(id).constant);
  }

  HostPart host(Op& op, CutGraph& result) {
    HostPart step;
    for (TensorId id : op.inputs) take_constant(id, result);
    for (auto& body : std::get<HostOp>(op.params).bodies) step.bodies.push_back(sparkle::cut(*body));
    step.op = std::move(op);
    return step;
  }

  static void find_last(CutGraph& result) {
    std::vector<bool> stays(result.tensors, false);
    for (TensorId id : result.outputs) stays[at(id)] = true;
    for (const auto& [id, value] : result.constants) stays[at(id)] = true;
    result.last.resize(result.steps.size());
    for (size_t s = result.steps.size(); s-- > 0;) {
      const auto read = [&](const std::vector<TensorId>& ids) {
        for (TensorId id : ids)
          if (id != kAbsent && !stays[at(id)]) stays[at(id)] = true, result.last[s].push_back(id);
      };
      if (const auto* planned = std::get_if<PlannedPart>(&result.steps[s])) read(planned->inputs), read(planned->outputs);
      else read(std::get<HostPart>(result.steps[s]).op.inputs), read(std::get<HostPart>(result.steps[s]).op.outputs);
    }
  }

  Graph& g_;
  std::vector<int> ready_, made_;
  std::vector<bool> data_;
  std::map<int, std::vector<Op*>> plain_, host_;
  std::map<size_t, std::set<int>> readers_;
};

}  // namespace

CutGraph cut(Graph graph) {
  remove_dead_ops(graph);
  return Cutter(graph).cut();
}

}  // namespace sparkle
