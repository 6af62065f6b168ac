// The second half of the door: a planned model gets its constants, packed as its kernels want them, and its launches recorded.
#include <algorithm>
#include <map>
#include <utility>

#include "base/system/out_of_memory.h"
#include "prepare/model_planner.h"

namespace sparkle {

Result<std::shared_ptr<PreparedPlan>> ModelPlanner::prepare(const std::vector<HostTensor>& inputs) {
  if (broken_) return *broken_;
  SPARKLE_TRY(planned, plan(inputs, WeightsIn::memory));
  auto prepared = std::make_shared<PreparedPlan>();
  fit_workspaces(planned.plan, planned.kernels);
  if (!planned.plan.host.empty()) prepared->host = planned.host;
  SPARKLE_TRY(segments, record(planned.plan, planned.kernels, *backend_, prepared->host.get()));
  prepared->segments = std::move(segments);
  prepared->kernels = std::move(planned.kernels);
  prepared->plan = std::make_shared<Plan>(std::move(planned.plan));
  if (compiled_) {
    SPARKLE_CHECK(take_packed(*prepared, planned.uses));
  } else {
    SPARKLE_CHECK(pack(*prepared, std::move(planned)));
  }
  return prepared;
}

// Constants as they lie in a compiled file: used there where the device sees the host's memory, else uploaded.
Status ModelPlanner::take_packed(PreparedPlan& prepared, std::span<const ConstantUse> uses) {
  SPARKLE_TRY(found, compiled_->constants(*prepared.plan, uses));
  std::map<std::pair<const std::byte*, RunsOn>, std::shared_ptr<Buffer>> buffers;
  for (size_t i = 0; i < found.size(); ++i) {
    const bool on_host = uses[i].side == RunsOn::host;
    std::shared_ptr<Buffer>& buffer = buffers[{found[i].data(), uses[i].side}];
    if (!buffer) {
      SPARKLE_TRY(made, (on_host ? *host_.constants : *constants_).place(found[i]));
      buffer = std::move(made);
    }
    (on_host ? prepared.host_constants : prepared.constants).push_back(buffer);
  }
  prepared.keeps = compiled_;
  constant_memory_ = {compiled_->weight_bytes(), compiled_->weight_bytes()};
  return ok();
}

Originals ModelPlanner::originals_of(const PlannedModel& planned) const {
  Originals originals;
  for (const GraphTensor& t : graph_.tensors)
    if (t.constant) add_original(originals, *t.constant);
  constants_->add_originals(originals);
  for (const GraphTensor& t : planned.bound.tensors)
    if (t.constant) add_original(originals, *t.constant);
  for (const PlanConstant& c : planned.plan.constants) add_original(originals, c.value);
  return originals;
}

// What the device's kernels read, and what the host's do: an original that both read counts twice, since each has its copy.
Result<ConstantMemory> ModelPlanner::foreseen(std::span<const PlanConstant> constants, std::span<const ConstantUse> uses,
                                              const Originals& originals, bool release) const {
  std::vector<ConstantUse> own, of_host;
  for (const ConstantUse& use : uses) (use.side == RunsOn::host ? of_host : own).push_back(use);
  SPARKLE_TRY(memory, constants_->foresee(constants, own, originals, release));
  if (of_host.empty()) return memory;
  Originals read_by_host;
  for (const ConstantUse& use : of_host) add_original(read_by_host, constants[use.constant].value);
  SPARKLE_TRY(more, host_.constants->foresee(constants, of_host, read_by_host, release));
  return ConstantMemory{memory.resident + more.resident, memory.peak + more.peak};
}

// Where all shapes are fixed this plan is the only one there will be: the model's own copy of a constant goes as soon as its
// packed form exists. Else it stays, since another plan may want it packed in another way - and where a device may be lost that
// alone has the packed form, unless the model can be read again.
bool ModelPlanner::lets_weights_go() const { return fixed_ && (again_ || !backend_->can_be_lost()); }

Status ModelPlanner::pack(PreparedPlan& prepared, PlannedModel planned) {
  Originals of_model;
  for (const GraphTensor& t : graph_.tensors)
    if (t.constant) add_original(of_model, *t.constant);
  planned.plan.constants = prepared.plan->constants;
  const bool let_go = lets_weights_go();
  // Every size is known now, and fits the budget: plan() has seen to that.
  SPARKLE_TRY(memory, foreseen(planned.plan.constants, planned.uses, originals_of(planned), let_go));
  planned.bound = {}, planned.plan = {};
  bound_.reset();
  if (let_go) {
    graph_ = {}, let_go_ = true;
    broken_ = out_of_memory("Packing the weights");  // until it is done: they cannot be packed again
  }
  if (Status packed = pack_all(prepared, planned.uses, of_model); !packed.ok()) {
    if (let_go) broken_ = packed.error();
    return packed;
  }
  broken_.reset();
  prepared.keeps = std::make_shared<std::pair<std::shared_ptr<ConstantStore>, HostSide>>(constants_, host_);
  constant_memory_.resident = memory.resident;
  constant_memory_.peak = std::max(constant_memory_.peak, memory.peak);
  return ok();
}

Status ModelPlanner::pack_all(PreparedPlan& prepared, std::span<const ConstantUse> uses, const Originals& of_model) {
  Plan& plan = *prepared.plan;
  std::vector<int> left(plan.constants.size(), 0);
  for (const ConstantUse& use : uses) ++left[use.constant];
  if (let_go_) {
    for (size_t i = 0; i < left.size(); ++i)
      if (left[i] == 0) plan.constants[i].value.bytes.reset();
  }
  for (const ConstantUse& use : uses) {
    PlanConstant& constant = plan.constants[use.constant];
    const bool on_host = use.side == RunsOn::host;
    SPARKLE_TRY(buffer, (on_host ? *host_.constants : *constants_).get(constant, *use.kernel, use.input));
    if (of_model.count(constant.value.bytes.get()) == 0)
      prepared.own_constant_bytes += constant.value.size_bytes() + buffer->bytes();
    (on_host ? prepared.host_constants : prepared.constants).push_back(std::move(buffer));
    if (!let_go_ || --left[use.constant] > 0) continue;
    constants_->release(constant);
    if (host_.constants) host_.constants->release(constant);
    constant.value.bytes.reset();
  }
  return ok();
}

void ModelPlanner::collect() {
  constant_memory_.resident -= constants_->collect();
  if (host_.constants) constant_memory_.resident -= host_.constants->collect();
}

Result<Graph> ModelPlanner::graph_again() const {
  if (!again_)
    return Error{Reason::bad_usage,
                 "The session has let the weights go of a model that was given in memory; open a session of it on the other "
                 "device, or give the model as a file."};
  SPARKLE_TRY(graph, again_());
  SPARKLE_CHECK(simplify(graph));
  if (!same_names(inputs_, graph, graph.inputs) || !same_shapes(inputs_, graph, graph.inputs) ||
      !same_names(outputs_, graph, graph.outputs))
    return Error{Reason::bad_model,
                 "The model has other inputs or outputs than when the session was opened; open a new session."};
  return graph;
}

Result<ModelPlanner::Past> ModelPlanner::move_to(std::shared_ptr<Backend> backend) {
  Past past{std::move(backend), {}, nullptr};
  past.constants = std::make_shared<ConstantStore>(*past.backend);
  if (compiled_) {
    SPARKLE_CHECK(compiled_->check_device(past.backend->device()));
  } else if (let_go_) {
    SPARKLE_TRY(graph, graph_again());
    graph_ = std::move(graph);
    let_go_ = false;
  }
  if (options_.tuning && options_.tuning->header() != TuningStore::header_for(past.backend->device())) options_.tuning.reset();
  past.host = std::exchange(host_, {});
  constants_.swap(past.constants);
  backend_.swap(past.backend);
  constant_memory_ = {};
  broken_.reset();
  return past;
}

}  // namespace sparkle
