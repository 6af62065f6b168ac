#include "prepare/model_planner.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "plan/choose/choose.h"
#include "plan/memory/budget.h"
#include "plan/choose/forced.h"
#include "prepare/compiled_file.h"

namespace sparkle {
namespace {

Result<Graph> bound_graph(const Graph& graph, const std::vector<InputBinding>& bindings) {
  SPARKLE_TRY(bound, sparkle::bind(graph, bindings));
  SPARKLE_CHECK(simplify(bound));
  return bound;
}

// Which operands of a step are constants of the plan.
const PlanTensor* constant_operand(const Plan& plan, const PlanStep& step, size_t input) {
  const PlanTensor& t = plan.tensors[static_cast<size_t>(step.inputs[input])];
  return t.kind == PlaceKind::constant ? &t : nullptr;
}

std::vector<KernelRequest> requests_of(const Plan& plan, RunsOn side) {
  std::vector<KernelRequest> requests;
  for (const PlanStep& step : plan.steps) {
    if (step.runs_on != side) continue;
    KernelRequest request{&step.stage, &step.schedule, 0, step.name};
    for (size_t i = 0; i < step.inputs.size() && i < 32; ++i)
      if (constant_operand(plan, step, i)) request.constants |= 1u << i;
    requests.push_back(std::move(request));
  }
  return requests;
}

// Of all steps in their order, each side's by its backend.
Result<Kernels> kernels_of(const Plan& plan, Backend& backend, Backend* host) {
  SPARKLE_TRY(own, make_kernels(backend, requests_of(plan, RunsOn::device)));
  Kernels of_host;
  if (!plan.host.empty()) {
    SPARKLE_TRY(made, make_kernels(*host, requests_of(plan, RunsOn::host)));
    of_host = std::move(made);
  }
  Kernels all;
  size_t next = 0, next_of_host = 0;
  for (const PlanStep& step : plan.steps)
    all.push_back(step.runs_on == RunsOn::device ? std::move(own[next++])
                  : step.runs_on == RunsOn::host ? std::move(of_host[next_of_host++])
                                                 : nullptr);
  return all;
}

std::vector<ConstantUse> uses_of(const Plan& plan, const Kernels& kernels) {
  std::vector<ConstantUse> uses;
  for (size_t s = 0; s < plan.steps.size(); ++s)
    for (size_t i = 0; i < plan.steps[s].inputs.size(); ++i)
      if (const PlanTensor* t = constant_operand(plan, plan.steps[s], i))
        uses.push_back({static_cast<size_t>(t->index), kernels[s].get(), static_cast<int>(i), plan.steps[s].runs_on});
  return uses;
}

// The weights of a compiled file: each constant once for each form that kernels take it in.
int64_t file_bytes(const PlannedModel& planned) {
  std::set<std::tuple<const std::byte*, std::string, bool>> written;
  int64_t bytes = 0;
  for (const ConstantUse& use : planned.uses) {
    const HostTensor& value = planned.plan.constants[use.constant].value;
    const int64_t packed = use.kernel->packed_bytes(use.input);
    const std::string key = packed > 0 ? use.kernel->packed_key(use.input) : std::string();
    if (!written.insert({value.bytes.get(), key, packed > 0 && use.side == RunsOn::host}).second) continue;
    bytes += compiled_extent(packed > 0 ? packed : value.size_bytes());
  }
  return bytes;
}

int64_t peak(const Plan& plan, int64_t arena_bytes, const ConstantMemory& memory) {
  int64_t bytes = arena_bytes;
  for (int t : plan.inputs) bytes += plan.tensors[static_cast<size_t>(t)].desc.bytes();
  for (int t : plan.outputs) bytes += plan.tensors[static_cast<size_t>(t)].desc.bytes();
  return std::max(memory.peak, memory.resident + bytes);
}

}  // namespace

int64_t peak_bytes(const Plan& plan, const ConstantMemory& memory) {
  return peak(plan, plan.arena_bytes + plan.host_arena_bytes, memory);
}

int64_t peak_bytes(const PlannedModel& planned, const ConstantMemory& memory) {
  return peak(planned.plan,
              arena_with_workspaces(planned.plan, planned.kernels, RunsOn::device) +
                  arena_with_workspaces(planned.plan, planned.kernels, RunsOn::host),
              memory);
}

ModelPlanner::ModelPlanner(std::shared_ptr<Backend> backend, const SessionOptions& options)
    : backend_(std::move(backend)), options_(options), constants_(std::make_shared<ConstantStore>(*backend_)) {}

Result<std::unique_ptr<ModelPlanner>> ModelPlanner::make(Graph graph, std::shared_ptr<Backend> backend,
                                                         const SessionOptions& options, GraphSource again) {
  std::unique_ptr<ModelPlanner> planner(new ModelPlanner(std::move(backend), options));
  SPARKLE_CHECK(simplify(graph));
  planner->inputs_ = declared_tensors(graph, graph.inputs), planner->outputs_ = declared_tensors(graph, graph.outputs);
  const std::vector<bool> by_value = inputs_needed_by_value(graph);
  for (size_t i = 0; i < by_value.size(); ++i) planner->inputs_[i].by_value = by_value[i];
  planner->fixed_ = all_fixed(planner->inputs_);
  if (planner->fixed_) {  // what binding says is known before the first run, which takes the result
    std::vector<InputBinding> bindings;
    for (TensorId id : graph.inputs) bindings.push_back({graph.tensor(id).shape, std::nullopt});
    SPARKLE_TRY(bound, bound_graph(graph, bindings));
    for (size_t i = 0; i < bound.outputs.size(); ++i) correct_sizes(planner->outputs_[i], bound.tensor(bound.outputs[i]));
    planner->bound_ = std::move(bound);
  }
  planner->graph_ = std::move(graph);
  planner->again_ = std::move(again);
  return planner;
}

Result<std::unique_ptr<ModelPlanner>> ModelPlanner::make(std::shared_ptr<const CompiledModel> model,
                                                         std::shared_ptr<Backend> backend, const SessionOptions& options) {
  SPARKLE_CHECK(model->check_device(backend->device()));
  SPARKLE_CHECK(check_options(*model, options));
  std::unique_ptr<ModelPlanner> planner(new ModelPlanner(std::move(backend), options));
  const Graph& graph = model->graph();
  planner->inputs_ = declared_tensors(graph, graph.inputs), planner->outputs_ = declared_tensors(graph, graph.outputs);
  planner->fixed_ = true;
  planner->compiled_ = std::move(model);
  return planner;
}

Result<Graph> ModelPlanner::bound_for(const std::vector<HostTensor>& inputs) const {
  if (bound_) return *bound_;
  std::vector<InputBinding> bindings;
  for (size_t i = 0; i < inputs.size(); ++i) {
    bindings.push_back({inputs[i].shape, std::nullopt});
    if (!inputs_[i].by_value) continue;
    // A copy: the caller's memory need not outlive the call, the plan does.
    HostTensor value = HostTensor::uninitialized(inputs[i].dtype, inputs[i].shape);
    std::memcpy(value.bytes.get(), inputs[i].bytes.get(), static_cast<size_t>(value.size_bytes()));
    bindings.back().value = std::move(value);
  }
  return bound_graph(graph_, bindings);
}

Status ModelPlanner::open_host() const {
  if (host_.backend) return ok();
  SPARKLE_TRY(opened, options_.open_host(backend_));
  host_ = {opened, std::make_shared<ConstantStore>(*opened)};
  return ok();
}

// Where the device lacks kernels, with the host for their steps.
Result<Plan> ModelPlanner::plan_now(PlannedModel& planned) const {
  PlanOptions options{planned.settings, options_.tuning.get()};
  planned.host = nullptr;
  auto plan = make_plan(planned.bound, backend_->device(), options);
  const bool lacking = plan.ok() ? !has_all_kernels(*plan) : plan.error().reason == Reason::no_kernel;
  if (!lacking || !options_.open_host || options_.fallback == Fallback::forbid) return plan;
  SPARKLE_CHECK(open_host());
  planned.host = host_.backend;
  options.host_device = &planned.host->device();
  return make_plan(planned.bound, backend_->device(), options);
}

// The plan of a compiled file stands as it is: a host that does some of its steps must be allowed, and the one of the file.
Result<Plan> ModelPlanner::plan_of_file() const {
  SPARKLE_TRY(plan, compiled_->plan());
  if (plan.host.empty()) return plan;
  const auto events = fallbacks_in(plan);
  SPARKLE_CHECK(check_fallback(events, options_.fallback));
  if (!options_.open_host)
    return Error{Reason::no_kernel, events.front().message +
                                        " Nothing opens the CPU for it here; compile the model again "
                                        "for a device that has the kernel."};
  SPARKLE_CHECK(open_host());
  SPARKLE_CHECK(compiled_->check_host(host_.backend->device()));
  return plan;
}

Status ModelPlanner::plan_bound(PlannedModel& planned) const {
  const auto use = [&](const Plan& plan) -> Status {
    SPARKLE_TRY(kernels, kernels_of(plan, *backend_, host_.backend.get()));
    planned.kernels = std::move(kernels);
    return ok();
  };
  if (compiled_) {
    SPARKLE_TRY(plan, plan_of_file());
    planned.plan = std::move(plan);
    SPARKLE_CHECK(use(planned.plan));
    planned.host = host_.backend;
  } else {
    SPARKLE_TRY(plan, plan_until_usable([&] { return plan_now(planned); }, use));
    planned.plan = std::move(plan);
  }
  planned.uses = uses_of(planned.plan, planned.kernels);
  return ok();
}

Result<ConstantMemory> ModelPlanner::memory_of(const PlannedModel& planned, WeightsIn where) const {
  if (where == WeightsIn::file || compiled_) {
    const int64_t bytes = compiled_ ? compiled_->weight_bytes() : file_bytes(planned);
    return ConstantMemory{bytes, bytes};
  }
  return foreseen(planned.plan.constants, planned.uses, originals_of(planned), lets_weights_go());
}

// The planner foresees the memory of a run; what packing takes on the way - the model's constants beside packed ones - only the
// kernels and the store tell. Where that exceeds the budget, the plan must need so much less.
Result<PlannedModel> ModelPlanner::plan(const std::vector<HostTensor>& inputs, WeightsIn where) const {
  constexpr int kMostPlans = 8;
  PlannedModel planned;
  planned.settings = options_;
  if (!compiled_) {
    SPARKLE_TRY(bound, bound_for(inputs));
    planned.bound = std::move(bound);
  }
  const int64_t budget = options_.memory_budget;
  std::optional<Error> over;
  for (int i = 0; i < kMostPlans; ++i) {
    if (Status made = plan_bound(planned); !made.ok()) return over ? *over : made.take_error();
    const int64_t foreseen = planned_bytes(planned.plan, backend_->device());
    SPARKLE_TRY(memory, memory_of(planned, where));
    const int64_t need = peak_bytes(planned, memory);
    Status fits = check_budget("With its weights packed the model '" + planned.plan.model + "'", need, budget);
    if (fits.ok()) {
      SPARKLE_CHECK(check_fallback(fallbacks_in(planned.plan), options_.fallback));
      log_not_as_forced(planned.plan, planned.settings);
      return planned;
    }
    over = fits.take_error();
    const int64_t smaller = std::min(planned.settings.memory_budget, foreseen) - (need - budget);
    if (compiled_ || smaller <= 0) break;
    planned.settings.memory_budget = smaller;
  }
  return *over;
}

}  // namespace sparkle
