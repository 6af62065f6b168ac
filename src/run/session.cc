#include "run/session.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/out_of_memory.h"
#include "plan/budget.h"
#include "plan/forced.h"
#include "run/declared_output.h"
#include "run/host_tensors.h"
#include "run/places_apart.h"
#include "prepare/prepared_plan.h"
#include "run/shape_advice.h"
#include "prepare/step_kernels.h"
#include "run/wipe.h"

namespace sparkle {
namespace {

// Slots of a program: the arena, then inputs, outputs and constants.
struct Slots {
  int inputs = 1, outputs = 0, constants = 0;
};

int64_t round_up(int64_t bytes) { return (bytes + 63) / 64 * 64; }

std::string shapes_text(const std::vector<HostTensor>& inputs) {
  std::string text;
  for (const HostTensor& t : inputs) text += t.shape.to_string() + ";";
  return text;
}

}  // namespace

Status check_options(const CompiledModel& model, const SessionOptions& asked) {
  const CompileOptions& have = model.options();
  const auto refused = [&](const std::string& option, const std::string& with, const std::string& instead) {
    return Error{Reason::bad_usage, "'" + model.name() + "' was compiled with " + option + " " + with + ", not " + instead +
                                        "; leave the option out, or compile the model again with it."};
  };
  const auto word = [](const std::string& text) { return text.empty() ? std::string("chosen by cost") : "'" + text + "'"; };
  if (!asked.algorithm.empty() && asked.algorithm != have.algorithm)
    return refused("the algorithm", word(have.algorithm), word(asked.algorithm));
  if (!asked.variant.empty() && asked.variant != have.variant)
    return refused("the variant", word(have.variant), word(asked.variant));
  if (!asked.fusion.empty() && asked.fusion != have.fusion) return refused("the fusion", word(have.fusion), word(asked.fusion));
  const auto number = [](double value) {
    char text[32];
    return std::string(text, static_cast<size_t>(std::snprintf(text, sizeof text, "%g", value)));
  };
  if (asked.accuracy != SessionOptions{}.accuracy && asked.accuracy != have.accuracy)
    return refused("an accuracy of", number(have.accuracy), number(asked.accuracy));
  if (asked.exact_nonfinite && !have.exact_nonfinite)
    return refused("algorithms for finite values", "(nonfinite fast)", "exact");
  if (!asked.fuse && have.fuse) return refused("fused steps,", "which stay fused", "apart");
  if (asked.tuning && (!model.tuning() || asked.tuning->to_text() != model.tuning()->to_text()))
    return refused("its own choices,", model.tuning() ? "of another tuning store" : "by cost", "those of this tuning store");
  return ok();
}

Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::open(Graph graph, std::shared_ptr<Backend> backend, const SessionOptions& options,
                                               GraphSource again) {
  return guard_memory("Opening the model", [&]() -> Result<std::unique_ptr<Session>> {
    return opened(std::move(graph), std::move(backend), options, std::move(again));
  });
}

void Session::describe(const Graph& graph) {
  const auto list = [&](const std::vector<TensorId>& ids, std::vector<SessionInput>& to) {
    for (TensorId id : ids) {
      const GraphTensor& t = graph.tensor(id);
      to.push_back({t.name, t.dtype, t.shape, t.axis_names, t.rank_known});
    }
  };
  list(graph.inputs, inputs_);
  list(graph.outputs, outputs_);
}

static Result<Graph> bound_graph(const Graph& graph, const std::vector<InputBinding>& bindings) {
  SPARKLE_TRY(bound, sparkle::bind(graph, bindings));
  SPARKLE_CHECK(simplify(bound));
  return bound;
}

Result<std::unique_ptr<Session>> Session::opened(Graph graph, std::shared_ptr<Backend> backend, const SessionOptions& options,
                                                 GraphSource again) {
  std::unique_ptr<Session> session(new Session);
  SPARKLE_CHECK(simplify(graph));
  session->describe(graph);
  const std::vector<bool> by_value = inputs_needed_by_value(graph);
  for (size_t i = 0; i < by_value.size(); ++i) session->inputs_[i].by_value = by_value[i];
  session->fixed_ = std::all_of(session->inputs_.begin(), session->inputs_.end(), [](const SessionInput& in) {
    return in.rank_known && !in.by_value && std::all_of(in.shape.begin(), in.shape.end(), [](int64_t d) { return d >= 0; });
  });
  if (session->fixed_) {  // what binding says is known before the first run, which takes the result
    std::vector<InputBinding> bindings;
    for (TensorId id : graph.inputs) bindings.push_back({graph.tensor(id).shape, std::nullopt});
    SPARKLE_TRY(bound, bound_graph(graph, bindings));
    for (size_t i = 0; i < bound.outputs.size(); ++i) correct_sizes(session->outputs_[i], bound.tensor(bound.outputs[i]));
    session->bound_ = std::move(bound);
  }
  session->graph_ = std::move(graph);
  session->again_ = std::move(again);
  session->constants_ = std::make_shared<ConstantStore>(*backend);
  session->backend_ = std::move(backend);
  session->options_ = options;
  session->cache_ = std::make_shared<CacheBytes>(options.plan_cache_bytes);
  return session;
}

Result<std::unique_ptr<Session>> Session::open(std::shared_ptr<const CompiledModel> model, std::shared_ptr<Backend> backend,
                                               const SessionOptions& options) {
  return guard_memory("Opening the compiled model", [&]() -> Result<std::unique_ptr<Session>> {
    SPARKLE_CHECK(model->check_device(backend->device()));
    SPARKLE_CHECK(check_options(*model, options));
    std::unique_ptr<Session> session(new Session);
    session->describe(model->graph());
    session->fixed_ = true;
    session->compiled_ = std::move(model);
    session->constants_ = std::make_shared<ConstantStore>(*backend);
    session->backend_ = std::move(backend);
    session->options_ = options;
    session->cache_ = std::make_shared<CacheBytes>(options.plan_cache_bytes);
    return session;
  });
}

Status Session::check_inputs(const std::vector<HostTensor>& inputs) const {
  if (inputs.size() != inputs_.size())
    return Error{Reason::bad_input, "The model takes " + std::to_string(inputs_.size()) + " inputs, " +
                                        std::to_string(inputs.size()) + " were given."};
  for (size_t i = 0; i < inputs.size(); ++i) {
    const SessionInput& want = inputs_[i];
    const HostTensor& have = inputs[i];
    const std::string who = "Input '" + want.name + "' ";
    if (have.dtype != want.dtype)
      return Error{Reason::bad_input, who + "is " + std::string(name_of(want.dtype)) + " in the model, " +
                                          std::string(name_of(have.dtype)) + " was given; convert it."};
    if (!tensor_bytes(have.dtype, have.shape))
      return Error{Reason::size_overflow, who + "of shape " + have.shape.to_string() + " is more than can be addressed."};
    if (want.by_value && !have.bytes && have.elements() > 0)
      return Error{Reason::bad_input, who + "decides shapes; its values must be given."};
    if (!want.rank_known) continue;
    bool fits = have.shape.size() == want.shape.size();
    for (int a = 0; fits && a < have.shape.size(); ++a) fits = want.shape[a] < 0 || want.shape[a] == have.shape[a];
    if (!fits) {
      const std::string advice = compiled_ ? "; compile the model for this shape" : shape_advice(want, have.shape);
      return Error{Reason::bad_input, who + "has shape " + declared_shape(want) +
                                          (compiled_ ? " in the compiled file, " : " in the model, ") + have.shape.to_string() +
                                          " was given" + advice + "."};
    }
  }
  return ok();
}

// A plan, the graph it was made of, and its kernels.
struct Session::Planned {
  Plan plan;
  Graph bound;  // empty for a compiled model
  StepKernels steps;
  int64_t foreseen_bytes = 0;  // what the planner says that it needs
};

// Kernels that need more scratch than the plan foresaw (weights packed at run time) get it behind the arena.
static void fit_workspaces(Plan& plan, const StepKernels& steps) {
  const int64_t planned_arena = plan.arena_bytes;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    PlanStep& step = plan.steps[i];
    if (steps.kernels[i]->workspace_bytes() <= step.workspace_bytes) continue;
    step.workspace_offset = round_up(planned_arena);
    step.workspace_bytes = steps.kernels[i]->workspace_bytes();
    plan.arena_bytes = std::max(plan.arena_bytes, step.workspace_offset + round_up(step.workspace_bytes));
  }
}

Result<Session::Planned> Session::plan_for(const std::vector<HostTensor>& inputs, int64_t memory_budget) const {
  Planned planned;
  if (compiled_) {
    SPARKLE_TRY(plan, compiled_->plan());
    planned.plan = std::move(plan);
  } else if (bound_) {
    planned.bound = *bound_;
  } else {
    std::vector<InputBinding> bindings;
    for (size_t i = 0; i < inputs.size(); ++i) {
      bindings.push_back({inputs[i].shape, std::nullopt});
      if (!inputs_[i].by_value) continue;
      // A copy: the caller's memory need not outlive the call, the plan does.
      HostTensor value = HostTensor::uninitialized(inputs[i].dtype, inputs[i].shape);
      std::memcpy(value.bytes.get(), inputs[i].bytes.get(), static_cast<size_t>(value.size_bytes()));
      bindings.back().value = std::move(value);
    }
    SPARKLE_TRY(bound, bound_graph(graph_, bindings));
    planned.bound = std::move(bound);
  }
  PlanOptions options = options_.plan();
  options.memory_budget = memory_budget;
  for (int bans = 0;; ++bans) {
    if (!compiled_) {
      SPARKLE_TRY(plan, make_plan(planned.bound, backend_->device(), options));
      planned.plan = std::move(plan);
    }
    auto steps = compile_steps(planned.plan, *backend_);
    // What has just failed on this driver is banned: the next plan does without it.
    constexpr int kMostBans = 32;
    if (!steps.ok() && steps.error().reason == Reason::failed_probe && !compiled_ && bans < kMostBans) continue;
    if (!steps.ok()) return steps.take_error();
    planned.steps = std::move(*steps);
    break;
  }
  log_not_as_forced(planned.plan, options);
  planned.foreseen_bytes = planned_bytes(planned.plan, backend_->device());
  fit_workspaces(planned.plan, planned.steps);
  return planned;
}

// The planner foresees the memory of a run; what packing takes on the way - the model's constants beside packed ones - only the
// kernels and the store tell. Where that exceeds the budget, the plan must need so much less.
Result<Session::Planned> Session::plan_within_budget(const std::vector<HostTensor>& inputs) const {
  constexpr int kMostPlans = 8;
  int64_t budget = options_.memory_budget;
  std::optional<Error> over;
  for (int i = 0; i < kMostPlans; ++i) {
    auto planned = plan_for(inputs, budget);
    if (!planned.ok()) return over ? *over : planned.take_error();
    if (options_.memory_budget <= 0 || compiled_) return planned;
    SPARKLE_TRY(memory,
                constants_->foresee(planned->plan.constants, planned->steps.uses, originals_of(*planned), lets_weights_go()));
    const Status fits = check_budget(planned->plan, memory);
    if (fits.ok()) return planned;
    over = fits.error();
    const int64_t excess = needed_bytes(planned->plan, memory) - options_.memory_budget;
    budget = std::min(budget, planned->foreseen_bytes) - excess;
    if (budget <= 0) break;
  }
  return *over;
}

Result<std::shared_ptr<PreparedPlan>> Session::build(const std::vector<HostTensor>& inputs) {
  SPARKLE_TRY(planned, plan_within_budget(inputs));
  auto prepared = std::make_shared<PreparedPlan>();
  prepared->plan = std::make_shared<Plan>(std::move(planned.plan));
  const Plan& p = *prepared->plan;
  for (size_t i = 0; i < inputs.size(); ++i) prepared->input_bound.push_back(inputs_[i].by_value);
  Slots slots;
  slots.outputs = slots.inputs + static_cast<int>(p.inputs.size());
  slots.constants = slots.outputs + static_cast<int>(p.outputs.size());
  std::vector<Launch> launches;
  int next_constant = slots.constants;  // one slot per use, in the order of StepKernels::uses
  const auto bind_operand = [&](int tensor) {
    const PlanTensor& t = p.tensors[static_cast<size_t>(tensor)];
    switch (t.kind) {
      case PlaceKind::arena: return Binding{0, t.offset};
      case PlaceKind::input: return Binding{slots.inputs + t.index, 0};
      case PlaceKind::output: return Binding{slots.outputs + t.index, 0};
      case PlaceKind::constant: break;
    }
    return Binding{next_constant++, 0};
  };
  for (size_t i = 0; i < p.steps.size(); ++i) {
    const PlanStep& step = p.steps[i];
    Launch launch;
    launch.kernel = planned.steps.kernels[i].get();
    launch.name = step.name;
    for (int tensor : step.inputs) launch.inputs.push_back(bind_operand(tensor));
    for (int tensor : step.outputs) launch.outputs.push_back(bind_operand(tensor));
    launch.workspace = {0, step.workspace_offset};
    launches.push_back(std::move(launch));
  }
  SPARKLE_TRY(program, backend_->record(launches));
  prepared->program = std::move(program);
  prepared->kernels = std::move(planned.steps.kernels);
  if (compiled_) {
    SPARKLE_CHECK(take_packed(*prepared, planned.steps.uses));
  } else {
    SPARKLE_CHECK(pack(*prepared, std::move(planned)));
  }
  return prepared;
}

// Constants as they lie in a compiled file: used there where the device sees the host's memory, else uploaded.
Status Session::take_packed(PreparedPlan& prepared, std::span<const ConstantUse> uses) {
  SPARKLE_TRY(found, compiled_->constants(*prepared.plan, uses));
  const ConstantMemory memory{compiled_->weight_bytes(), compiled_->weight_bytes()};
  SPARKLE_CHECK(check_budget(*prepared.plan, memory));
  std::map<const std::byte*, std::shared_ptr<Buffer>> buffers;
  for (const auto& bytes : found) {
    std::shared_ptr<Buffer>& buffer = buffers[bytes.data()];
    if (!buffer) {
      SPARKLE_TRY(made, constants_->place(bytes));
      buffer = std::move(made);
    }
    prepared.constants.push_back(buffer);
  }
  prepared.keeps = compiled_;
  constant_memory_ = memory;
  return ok();
}

Originals Session::originals_of(const Planned& planned) const {
  Originals originals;
  for (const GraphTensor& t : graph_.tensors)
    if (t.constant) add_original(originals, *t.constant);
  constants_->add_originals(originals);
  for (const GraphTensor& t : planned.bound.tensors)
    if (t.constant) add_original(originals, *t.constant);
  for (const PlanConstant& c : planned.plan.constants) add_original(originals, c.value);
  return originals;
}

// Where all shapes are fixed this plan is the only one there will be: the model's own copy of a constant goes as soon as its
// packed form exists. Else it stays, since another plan may want it packed in another way - and where a device may be lost that
// alone has the packed form, unless the model can be read again.
bool Session::lets_weights_go() const { return fixed_ && (again_ || backend_->device().kind == DeviceKind::cpu); }

Status Session::pack(PreparedPlan& prepared, Planned planned) {
  Plan& plan = *prepared.plan;
  const std::span<const ConstantUse> uses = planned.steps.uses;
  Originals of_model;
  for (const GraphTensor& t : graph_.tensors)
    if (t.constant) add_original(of_model, *t.constant);
  planned.plan.constants = plan.constants;
  const bool let_go = lets_weights_go();
  SPARKLE_TRY(memory, constants_->foresee(plan.constants, uses, originals_of(planned), let_go));
  // Every size is known now: nothing is packed that the budget has no room for.
  SPARKLE_CHECK(check_budget(plan, memory));
  planned.bound = {}, planned.plan = {};
  bound_.reset();
  if (let_go) {
    graph_ = {}, let_go_ = true;
    broken_ = out_of_memory("Packing the weights");  // until it is done: they cannot be packed again
  }
  if (Status packed = pack_all(prepared, uses, of_model); !packed.ok()) {
    if (let_go) broken_ = packed.error();
    return packed;
  }
  broken_.reset();
  prepared.keeps = constants_;
  constant_memory_.resident = memory.resident;
  constant_memory_.peak = std::max(constant_memory_.peak, memory.peak);
  return ok();
}

Status Session::pack_all(PreparedPlan& prepared, std::span<const ConstantUse> uses, const Originals& of_model) {
  Plan& plan = *prepared.plan;
  std::vector<int> left(plan.constants.size(), 0);
  for (const ConstantUse& use : uses) ++left[use.constant];
  if (let_go_) {
    for (size_t i = 0; i < left.size(); ++i)
      if (left[i] == 0) plan.constants[i].value.bytes.reset();
  }
  for (const ConstantUse& use : uses) {
    PlanConstant& constant = plan.constants[use.constant];
    SPARKLE_TRY(buffer, constants_->get(constant, *use.kernel, use.input));
    if (of_model.count(constant.value.bytes.get()) == 0)
      prepared.own_constant_bytes += constant.value.size_bytes() + buffer->bytes();
    prepared.constants.push_back(std::move(buffer));
    if (!let_go_ || --left[use.constant] > 0) continue;
    constants_->release(constant);
    constant.value.bytes.reset();
  }
  return ok();
}

int64_t Session::needed_bytes(const Plan& plan, const ConstantMemory& memory) const {
  return std::max(memory.peak, memory.resident + bytes_beside_constants(plan));
}

Status Session::check_budget(const Plan& plan, const ConstantMemory& memory) const {
  const int64_t need = needed_bytes(plan, memory);
  if (options_.memory_budget <= 0 || need <= options_.memory_budget) return ok();
  return Error{Reason::over_memory_budget, "With its weights packed the model '" + plan.model + "' needs " +
                                               std::to_string(need) + " bytes, the memory budget is " +
                                               std::to_string(options_.memory_budget) +
                                               "; give smaller inputs or a larger --memory-budget."};
}

Result<Session::Placed> Session::prepared(const std::vector<HostTensor>& inputs) {
  SPARKLE_CHECK(check_inputs(inputs));
  std::string key = shapes_text(inputs);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs_[i].by_value && inputs[i].bytes)
      key.append(reinterpret_cast<const char*>(inputs[i].bytes.get()), static_cast<size_t>(inputs[i].size_bytes()));
  const std::lock_guard lock(mutex_);
  if (broken_) return *broken_;
  if (const auto found = plans_.find(key); found != plans_.end()) {
    std::erase(plan_order_, key);
    plan_order_.push_back(key);
    return Placed{backend_, found->second};
  }
  SPARKLE_TRY(made, build(inputs));
  plans_[key] = made;
  plan_order_.push_back(key);
  made->enter(cache_);
  // Least recently used plans go; runs that still hold one keep it alive until they end.
  bool gone = false;
  for (; cache_->exceeded() && plan_order_.size() > 1; gone = true) {
    const auto oldest = plans_.find(plan_order_.front());
    oldest->second->leave();
    plans_.erase(oldest);
    plan_order_.erase(plan_order_.begin());
  }
  if (gone) constant_memory_.resident -= constants_->collect();
  return Placed{backend_, std::move(made)};
}

Result<std::shared_ptr<const Plan>> Session::prepare(const std::vector<HostTensor>& inputs) {
  return guard_memory("Preparing the model for these inputs", [&]() -> Result<std::shared_ptr<const Plan>> {
    SPARKLE_TRY(made, prepared(inputs));
    return std::shared_ptr<const Plan>(made.plan->plan);
  });
}

Status Session::check_values(const std::vector<HostTensor>& inputs) const {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i].bytes && inputs[i].elements() > 0)
      return Error{Reason::bad_input, "Input '" + inputs_[i].name + "' has a shape, but no values."};
  return ok();
}

Result<std::vector<HostTensor>> Session::run(const std::vector<HostTensor>& inputs, RunReport* report, bool timestamps) {
  return guard_memory("Running the model on these inputs", [&]() -> Result<std::vector<HostTensor>> {
    SPARKLE_TRY(placed, prepared(inputs));
    SPARKLE_CHECK(check_values(inputs));
    return run_plan(placed, inputs, report, timestamps);
  });
}

Result<std::vector<HostTensor>> Session::run_wiped(const std::vector<HostTensor>& inputs, std::byte wiped_to) {
  return guard_memory("Running the model on these inputs", [&]() -> Result<std::vector<HostTensor>> {
    SPARKLE_TRY(placed, prepared(inputs));
    SPARKLE_CHECK(check_values(inputs));
    return run_plan(placed, inputs, nullptr, false, wiped_to);
  });
}

Result<std::vector<HostTensor>> Session::run_plan(const Placed& placed, const std::vector<HostTensor>& inputs,
                                                  RunReport* report, bool timestamps, std::optional<std::byte> wiped_to) {
  const Plan& p = *placed.plan->plan;
  std::vector<HostTensor> outputs;
  for (int t : p.outputs) {
    const TensorDesc& desc = p.tensors[static_cast<size_t>(t)].desc;
    SPARKLE_TRY(output, allocate_tensor(desc.dtype, desc.shape, "Output '" + p.tensors[static_cast<size_t>(t)].name + "'"));
    outputs.push_back(std::move(output));
  }
  SPARKLE_CHECK(execute(placed, inputs, outputs, report, timestamps, wiped_to));
  for (int i : p.open) end_after_found_rows(outputs[static_cast<size_t>(i)]);
  return outputs;
}

Status Session::run_into(const std::vector<HostTensor>& inputs, const std::vector<HostTensor>& outputs, RunReport* report,
                         bool timestamps) {
  return guard_memory("Running the model on these inputs", [&]() -> Status {
    SPARKLE_TRY(placed, prepared(inputs));
    SPARKLE_CHECK(check_values(inputs));
    return execute(placed, inputs, outputs, report, timestamps);
  });
}

Status Session::execute(const Placed& placed, const std::vector<HostTensor>& inputs, const std::vector<HostTensor>& outputs,
                        RunReport* report, bool timestamps, std::optional<std::byte> wiped_to) {
  Backend& backend = *placed.backend;
  PreparedPlan& plan = *placed.plan;
  std::vector<std::shared_ptr<Buffer>> held;
  std::vector<Buffer*> slots;
  SPARKLE_TRY(arena, plan.take_arena(backend));
  slots.push_back(arena.get());
  for (const HostTensor& tensor : inputs) {
    SPARKLE_TRY(buffer, input_buffer(backend, tensor));
    slots.push_back(buffer.get());
    held.push_back(std::move(buffer));
  }
  std::vector<std::shared_ptr<Buffer>> downloads(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const int64_t bytes = std::max<int64_t>(outputs[i].size_bytes(), 1);
    SPARKLE_TRY(own, backend.import(outputs[i].bytes.get(), bytes));
    if (!own) {
      SPARKLE_TRY(device, backend.allocate(bytes, MemoryKind::device));
      own = std::move(device);
      downloads[i] = own;
    }
    slots.push_back(own.get());
    held.push_back(std::move(own));
  }
  if (wiped_to) {
    SPARKLE_CHECK(wipe(backend, *arena, *wiped_to));
    for (size_t i = 0; i < outputs.size(); ++i) {
      std::memset(outputs[i].bytes.get(), std::to_integer<int>(*wiped_to), static_cast<size_t>(outputs[i].size_bytes()));
      if (downloads[i]) SPARKLE_CHECK(wipe(backend, *downloads[i], *wiped_to));
    }
  }
  for (const auto& constant : plan.constants) slots.push_back(constant.get());
  const auto begin = std::chrono::steady_clock::now();
  SPARKLE_TRY(token, backend.submit(*plan.program, slots, {{}, timestamps, nullptr}));
  SPARKLE_CHECK(backend.wait(token));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!downloads[i] || outputs[i].size_bytes() == 0) continue;
    backend.count_host_transfer();
    if (const std::byte* host = downloads[i]->host()) {
      std::memcpy(outputs[i].bytes.get(), host, static_cast<size_t>(outputs[i].size_bytes()));
      continue;
    }
    SPARKLE_TRY(staging, backend.allocate(outputs[i].size_bytes(), MemoryKind::staging));
    const CopyRegion region{downloads[i].get(), 0, staging.get(), 0, outputs[i].size_bytes()};
    SPARKLE_TRY(copied, backend.copy({&region, 1}, token));
    SPARKLE_CHECK(backend.wait(copied));
    std::memcpy(outputs[i].bytes.get(), staging->host(), static_cast<size_t>(outputs[i].size_bytes()));
  }
  plan.give_back(std::move(arena));
  if (report) {
    report->plan = plan.plan;
    report->seconds = seconds;
    report->steps.clear();
    if (timestamps) {
      SPARKLE_TRY(times, backend.timestamps(token));
      for (const StepTime& t : times) report->steps.push_back({t.end - t.begin});
    }
  }
  return ok();
}

Result<Token> Session::submit(const std::vector<HostTensor>& shapes, std::vector<std::shared_ptr<Buffer>> input_buffers,
                              std::vector<std::shared_ptr<Buffer>> output_buffers, const Backend* owner) {
  return guard_memory("Running the model on these inputs",
                      [&] { return submit_plan(shapes, std::move(input_buffers), std::move(output_buffers), owner); });
}

Result<Token> Session::submit_plan(const std::vector<HostTensor>& shapes, std::vector<std::shared_ptr<Buffer>> input_buffers,
                                   std::vector<std::shared_ptr<Buffer>> output_buffers, const Backend* owner) {
  SPARKLE_TRY(placed, prepared(shapes));
  const auto& [backend, plan] = placed;
  if (owner && owner != backend.get())
    return Error{Reason::bad_usage, "The session has moved to another device; allocate the buffers there and run again."};
  const Plan& p = *plan->plan;
  if (input_buffers.size() != p.inputs.size() || output_buffers.size() != p.outputs.size())
    return Error{Reason::bad_input, "The model has " + std::to_string(p.inputs.size()) + " inputs and " +
                                        std::to_string(p.outputs.size()) + " outputs; one buffer is needed for each."};
  SPARKLE_TRY(arena, plan->take_arena(*backend));
  std::vector<Buffer*> slots{arena.get()};
  const auto add = [&](const std::vector<std::shared_ptr<Buffer>>& buffers, const std::vector<int>& tensors) -> Status {
    for (size_t i = 0; i < buffers.size(); ++i) {
      const PlanTensor& t = p.tensors[static_cast<size_t>(tensors[i])];
      if (!buffers[i] || buffers[i]->bytes() < t.desc.bytes())
        return Error{Reason::bad_input,
                     "The buffer for '" + t.name + "' must hold " + std::to_string(t.desc.bytes()) + " bytes."};
      slots.push_back(buffers[i].get());
    }
    return ok();
  };
  SPARKLE_CHECK(add(input_buffers, p.inputs));
  SPARKLE_CHECK(add(output_buffers, p.outputs));
  SPARKLE_CHECK(places_apart(p, {slots.data() + 1, slots.size() - 1}));
  for (const auto& constant : plan->constants) slots.push_back(constant.get());
  SubmitOptions options;
  // Everything the work touches stays alive until it is complete.
  options.keep_alive = std::make_shared<std::vector<std::shared_ptr<void>>>();
  for (auto& buffer : input_buffers) options.keep_alive->push_back(buffer);
  for (auto& buffer : output_buffers) options.keep_alive->push_back(buffer);
  options.keep_alive->push_back(plan);
  options.keep_alive->push_back(
      std::shared_ptr<void>(arena.get(), [plan = placed.plan, arena](void*) { plan->give_back(arena); }));
  return backend->submit(*plan->program, slots, options);
}

int64_t Session::constant_bytes() const {
  const std::lock_guard lock(mutex_);
  return constant_memory_.resident;
}

int64_t Session::cached_bytes() const {
  const std::lock_guard lock(mutex_);
  return cache_->held();
}

std::shared_ptr<Backend> Session::backend() const {
  const std::lock_guard lock(mutex_);
  return backend_;
}

int64_t Session::bytes_beside_constants(const Plan& plan) const {
  int64_t bytes = plan.arena_bytes;
  for (int t : plan.inputs) bytes += plan.tensors[static_cast<size_t>(t)].desc.bytes();
  for (int t : plan.outputs) bytes += plan.tensors[static_cast<size_t>(t)].desc.bytes();
  return bytes;
}

int64_t Session::peak_bytes(const Plan& plan) const {
  const std::lock_guard lock(mutex_);
  return std::max(constant_memory_.peak, constant_memory_.resident + bytes_beside_constants(plan));
}

}  // namespace sparkle
