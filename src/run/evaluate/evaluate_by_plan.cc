// One operator on constants, planned and run like a model: how bind() comes by values that it needs to know
// (graph/evaluate/evaluate.h).
#include "backends/reference/reference_backend.h"
#include "graph/evaluate/evaluate.h"
#include "run/session.h"

namespace sparkle {

Result<std::vector<HostTensor>> evaluate_by_plan(const Graph& graph, const Op& op) {
  Graph one;
  one.opset = graph.opset;
  Op node = op;
  for (TensorId& id : node.inputs)
    if (id != kAbsent) id = one.add_constant(graph.tensor(id).name, *graph.tensor(id).constant);
  for (TensorId& id : node.outputs) {
    if (id == kAbsent) continue;
    const GraphTensor& of = graph.tensor(id);
    GraphTensor out;
    out.name = of.name, out.dtype = of.dtype, out.known = of.known, out.rank_known = of.rank_known, out.shape = of.shape;
    out.axis_names = of.axis_names, out.open = of.open;
    id = one.add(std::move(out));
    one.outputs.push_back(id);
  }
  one.ops.push_back(std::move(node));
  SPARKLE_TRY(session, Session::open(std::move(one), make_reference_backend(), {}));
  SPARKLE_TRY(given, session->run({}));
  std::vector<HostTensor> values;
  size_t next = 0;
  for (TensorId id : op.outputs) values.push_back(id == kAbsent ? HostTensor() : std::move(given[next++]));
  return values;
}

}  // namespace sparkle
