// A session that goes on with another backend: what the one before held is dropped once nobody else can come to it.
#include "base/out_of_memory.h"
#include "prepare/prepared_plan.h"
#include "run/session.h"

namespace sparkle {
namespace {

bool same_tensors(const std::vector<SessionInput>& wanted, const Graph& graph, const std::vector<TensorId>& ids) {
  if (wanted.size() != ids.size()) return false;
  for (size_t i = 0; i < ids.size(); ++i) {
    const GraphTensor& t = graph.tensor(ids[i]);
    if (t.name != wanted[i].name || t.dtype != wanted[i].dtype || t.rank_known != wanted[i].rank_known ||
        !(t.shape == wanted[i].shape))
      return false;
  }
  return true;
}

}  // namespace

Result<Graph> Session::graph_again() const {
  if (!again_)
    return Error{Reason::bad_usage,
                 "The session has let the weights go of a model that was given in memory; open a session of it on the other "
                 "device, or give the model as a file."};
  SPARKLE_TRY(graph, again_());
  SPARKLE_CHECK(simplify(graph));
  if (!same_tensors(inputs_, graph, graph.inputs) || !same_tensors(outputs_, graph, graph.outputs))
    return Error{Reason::bad_model,
                 "The model has other inputs or outputs than when the session was opened; open a new session."};
  return graph;
}

Status Session::move_to(std::shared_ptr<Backend> backend) {
  return guard_memory("Moving the session to another device", [&] { return go_to(std::move(backend)); });
}

Status Session::go_to(std::shared_ptr<Backend> backend) {
  auto constants = std::make_shared<ConstantStore>(*backend);
  auto cache = std::make_shared<CacheBytes>(options_.plan_cache_bytes);
  std::map<std::string, std::shared_ptr<PreparedPlan>> plans;
  const std::string tuning_here = TuningStore::header_for(backend->device());
  // After the exchange these hold what is old. They go when the lock is free again, the backend last.
  const std::lock_guard lock(mutex_);
  if (compiled_) {
    SPARKLE_CHECK(compiled_->check_device(backend->device()));
  } else if (let_go_) {
    SPARKLE_TRY(graph, graph_again());
    graph_ = std::move(graph);
    let_go_ = false;
  }
  if (options_.tuning && options_.tuning->header() != tuning_here) options_.tuning.reset();
  for (const auto& [key, plan] : plans_) plan->leave();
  plan_order_.clear();
  plans_.swap(plans);
  cache_.swap(cache);
  constants_.swap(constants);
  backend_.swap(backend);
  constant_memory_ = {};
  broken_.reset();
  return ok();
}

}  // namespace sparkle
