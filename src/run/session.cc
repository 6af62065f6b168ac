#include "run/session.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "backends/task_trace.h"
#include "base/system/out_of_memory.h"
#include "families/values/element.h"
#include "graph/parts/expand.h"
#include "run/host_tensors.h"
#include "run/overlap.h"
#include "run/segments/submit_segments.h"
#include "run/wipe.h"

namespace sparkle {
namespace {

std::string shapes_text(const std::vector<HostTensor>& inputs) {
  std::string text;
  for (const HostTensor& t : inputs) text += t.shape.to_string() + ";";
  return text;
}

bool has_nan(const HostTensor& t) {
  if (!is_float(t.dtype)) return false;
  for (int64_t i = 0; i < t.elements(); ++i)
    if (std::isnan(load_element(t.dtype, t.bytes.get() + i * size_of(t.dtype)))) return true;
  return false;
}

}  // namespace

Session::Session(std::unique_ptr<ModelPlanner> planner, const SessionOptions& options, bool compiled)
    : plan_cache_bytes_(options.plan_cache_bytes),
      compiled_(compiled),
      fallback_(options.fallback),
      next_device_(options.next_device),
      planner_(std::move(planner)),
      cache_(std::make_shared<CacheBytes>(options.plan_cache_bytes)) {
  for (const FallbackEvent& event : options.events) events_.add(event, fallback_);
}

Session::Session(std::unique_ptr<ModelInParts> parts, const SessionOptions& options)
    : plan_cache_bytes_(options.plan_cache_bytes),
      compiled_(false),
      fallback_(options.fallback),
      next_device_(options.next_device),
      parts_(std::move(parts)) {
  for (const FallbackEvent& event : options.events) events_.add(event, fallback_);
}

Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::open(Graph graph, std::shared_ptr<Backend> backend, const SessionOptions& options,
                                               GraphSource again) {
  return guard_memory("Opening the model", [&]() -> Result<std::unique_ptr<Session>> {
    if (runs_in_parts(graph)) SPARKLE_CHECK(expand_paths(graph));
    if (runs_in_parts(graph)) {
      auto parts = std::make_unique<ModelInParts>(std::move(graph), std::move(backend), options);
      return std::unique_ptr<Session>(new Session(std::move(parts), options));
    }
    SPARKLE_TRY(planner, ModelPlanner::make(std::move(graph), std::move(backend), options, std::move(again)));
    return std::unique_ptr<Session>(new Session(std::move(planner), options, false));
  });
}

Result<std::unique_ptr<Session>> Session::open(std::shared_ptr<const CompiledModel> model, std::shared_ptr<Backend> backend,
                                               const SessionOptions& options) {
  return guard_memory("Opening the compiled model", [&]() -> Result<std::unique_ptr<Session>> {
    SPARKLE_TRY(planner, ModelPlanner::make(std::move(model), std::move(backend), options));
    return std::unique_ptr<Session>(new Session(std::move(planner), options, true));
  });
}

Result<Session::Placed> Session::prepared(const std::vector<HostTensor>& inputs) {
  std::vector<FallbackEvent> fallbacks;
  auto placed = placed_for(inputs, fallbacks);
  for (FallbackEvent& event : fallbacks) events_.add(std::move(event), fallback_);
  return placed;
}

Result<Session::Placed> Session::placed_for(const std::vector<HostTensor>& inputs, std::vector<FallbackEvent>& fallbacks) {
  SPARKLE_CHECK(has_single_plan());
  SPARKLE_CHECK(check_inputs(this->inputs(), inputs, compiled_));
  std::string key = shapes_text(inputs);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (this->inputs()[i].by_value && inputs[i].bytes)
      key.append(reinterpret_cast<const char*>(inputs[i].bytes.get()), static_cast<size_t>(inputs[i].size_bytes()));
  const std::lock_guard lock(mutex_);
  if (const auto found = plans_.find(key); found != plans_.end()) {
    std::erase(plan_order_, key);
    plan_order_.push_back(key);
    return Placed{planner_->backend(), found->second};
  }
  SPARKLE_TRY(made, planner_->prepare(inputs));
  fallbacks = planner_->fallbacks_in(*made->plan);
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
  if (gone) planner_->collect();
  return Placed{planner_->backend(), std::move(made)};
}

Result<std::shared_ptr<const Plan>> Session::prepare(const std::vector<HostTensor>& inputs) {
  return with_recovery([&] {
    return guard_memory("Preparing the model for these inputs", [&]() -> Result<std::shared_ptr<const Plan>> {
      SPARKLE_TRY(made, prepared(inputs));
      return std::shared_ptr<const Plan>(made.plan->plan);
    });
  });
}

Status Session::check_values(const std::vector<HostTensor>& inputs) const {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i].bytes && inputs[i].elements() > 0)
      return Error{Reason::bad_input, "Input '" + this->inputs()[i].name + "' has a shape, but no values."};
  return ok();
}

Result<std::vector<HostTensor>> Session::run_parts(const std::vector<HostTensor>& inputs, RunReport* report) {
  const auto begin = std::chrono::steady_clock::now();
  SPARKLE_TRY(outputs, parts_->run(inputs));
  if (report) *report = {}, report->seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return outputs;
}

Status Session::run_parts_into(const std::vector<HostTensor>& inputs, const std::vector<HostTensor>& outputs,
                               RunReport* report) {
  SPARKLE_TRY(results, run_parts(inputs, report));
  if (results.size() != outputs.size())
    return Error{Reason::bad_input, "The model has " + std::to_string(results.size()) + " outputs, " +
                                        std::to_string(outputs.size()) + " places were given."};
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i].dtype != outputs[i].dtype || results[i].shape != outputs[i].shape)
      return Error{Reason::bad_input, "Output '" + this->outputs()[i].name + "' is " + std::string(name_of(results[i].dtype)) +
                                          " " + results[i].shape.to_string() + " for these inputs, its place is " +
                                          std::string(name_of(outputs[i].dtype)) + " " + outputs[i].shape.to_string() + "."};
  for (size_t i = 0; i < results.size(); ++i)
    std::memcpy(outputs[i].bytes.get(), results[i].bytes.get(), static_cast<size_t>(results[i].size_bytes()));
  return ok();
}

Result<std::vector<HostTensor>> Session::run(const std::vector<HostTensor>& inputs, RunReport* report, bool timestamps) {
  return with_recovery([&] {
    return guard_memory("Running the model on these inputs", [&]() -> Result<std::vector<HostTensor>> {
      if (parts_) return run_parts(inputs, report);
      SPARKLE_TRY(placed, prepared(inputs));
      SPARKLE_CHECK(check_values(inputs));
      return run_plan(placed, inputs, report, timestamps ? Keep::steps : Keep::nothing);
    });
  });
}

Result<std::vector<HostTensor>> Session::run_traced(const std::vector<HostTensor>& inputs, RunReport& report) {
  return guard_memory("Running the model on these inputs", [&]() -> Result<std::vector<HostTensor>> {
    SPARKLE_TRY(placed, prepared(inputs));
    SPARKLE_CHECK(check_values(inputs));
    return run_plan(placed, inputs, &report, Keep::tasks);
  });
}

Result<std::vector<HostTensor>> Session::run_wiped(const std::vector<HostTensor>& inputs, std::byte wiped_to) {
  return guard_memory("Running the model on these inputs", [&]() -> Result<std::vector<HostTensor>> {
    SPARKLE_TRY(placed, prepared(inputs));
    SPARKLE_CHECK(check_values(inputs));
    SPARKLE_TRY(outputs, run_plan(placed, inputs, nullptr, Keep::nothing, Wiping{wiped_to}));
    if (wiped_to == kWipedToNan || std::none_of(outputs.begin(), outputs.end(), has_nan)) return outputs;
    return run_plan(placed, inputs, nullptr, Keep::nothing, Wiping{wiped_to, true});
  });
}

Result<std::vector<HostTensor>> Session::run_plan(const Placed& placed, const std::vector<HostTensor>& inputs,
                                                  RunReport* report, Keep keep, std::optional<Wiping> wiping) {
  const Plan& p = *placed.plan->plan;
  std::vector<HostTensor> outputs;
  for (int t : p.outputs) {
    const TensorDesc& desc = p.tensors[static_cast<size_t>(t)].desc;
    SPARKLE_TRY(output, allocate_tensor(desc.dtype, desc.shape, "Output '" + p.tensors[static_cast<size_t>(t)].name + "'"));
    outputs.push_back(std::move(output));
  }
  SPARKLE_CHECK(execute(placed, inputs, outputs, report, keep, wiping));
  for (int i : p.open) end_after_found_rows(outputs[static_cast<size_t>(i)]);
  return outputs;
}

Status Session::run_into(const std::vector<HostTensor>& inputs, const std::vector<HostTensor>& outputs, RunReport* report,
                         bool timestamps) {
  return with_recovery([&] {
    return guard_memory("Running the model on these inputs", [&]() -> Status {
      if (parts_) return run_parts_into(inputs, outputs, report);
      SPARKLE_TRY(placed, prepared(inputs));
      SPARKLE_CHECK(check_values(inputs));
      return execute(placed, inputs, outputs, report, timestamps ? Keep::steps : Keep::nothing);
    });
  });
}

Status Session::execute(const Placed& placed, const std::vector<HostTensor>& inputs, const std::vector<HostTensor>& outputs,
                        RunReport* report, Keep keep, std::optional<Wiping> wiping) {
  using Clock = std::chrono::steady_clock;
  const auto seconds_of = [](Clock::duration time) { return std::chrono::duration<double>(time).count(); };
  const auto entered = Clock::now();
  Backend& backend = *placed.backend;
  PreparedPlan& plan = *placed.plan;
  std::vector<std::shared_ptr<Buffer>> held;
  std::vector<Buffer*> places;
  SPARKLE_TRY(arenas, plan.take_arenas(backend));
  for (const HostTensor& tensor : inputs) {
    SPARKLE_TRY(buffer, input_buffer(backend, tensor));
    places.push_back(buffer.get());
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
    places.push_back(own.get());
    held.push_back(std::move(own));
  }
  if (wiping) {
    SPARKLE_CHECK(wipe(backend, *arenas.device, wiping->to));
    if (arenas.host) SPARKLE_CHECK(wipe(backend, *arenas.host, wiping->to));
    for (size_t i = 0; i < outputs.size(); ++i) {
      std::memset(outputs[i].bytes.get(), std::to_integer<int>(wiping->to), static_cast<size_t>(outputs[i].size_bytes()));
      if (downloads[i]) SPARKLE_CHECK(wipe(backend, *downloads[i], wiping->to));
    }
  }
  const RunSlots slots = slots_of(plan, arenas, places);
  const SubmitOptions options{{}, keep != Keep::nothing, nullptr};
  auto* tracer = keep == Keep::tasks ? dynamic_cast<TaskTrace*>(&backend) : nullptr;
  if (plan.host) tracer = nullptr;
  std::vector<TaskSpan> tasks;
  std::vector<StepTime> times;
  int64_t left_out = 0;
  const auto begin = Clock::now();
  const auto submit = [&]() -> Result<Token> {
    if (tracer) return tracer->submit_traced(*plan.segments[0].program, slots.device, options, tasks, left_out);
    if (!wiping || !wiping->each_step) return submit_segments(plan, backend, slots, options, &times);
    SPARKLE_CHECK(run_steps_wiped(plan, backend, slots, wiping->to));
    return Token{};
  };
  SPARKLE_TRY(token, submit());
  SPARKLE_CHECK(backend.wait(token));
  const auto end = Clock::now();
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
  plan.give_back(std::move(arenas));
  if (report) {
    report->plan = plan.plan;
    report->seconds = seconds_of(end - begin);
    report->before_seconds = seconds_of(begin - entered), report->after_seconds = seconds_of(Clock::now() - end);
    report->tasks = std::move(tasks), report->tasks_left_out = left_out;
    report->steps.clear();
    if (options.timestamps) {
      if (!plan.host) {
        SPARKLE_TRY(own, backend.timestamps(token));
        times = std::move(own);
      }
      for (const StepTime& t : times) report->steps.push_back({t.end - t.begin, t.begin});
    }
  }
  return ok();
}

Result<double> Session::seconds_of_run(const std::vector<HostTensor>& inputs, const Burst& burst) {
  if (parts_) return 0.0;
  return guard_memory("Running the model on these inputs", [&]() -> Result<double> {
    SPARKLE_TRY(placed, prepared(inputs));
    SPARKLE_CHECK(check_values(inputs));
    PreparedPlan& plan = *placed.plan;
    auto* const clock = dynamic_cast<BurstClock*>(placed.backend.get());
    if (!clock || plan.host) return 0.0;
    std::vector<std::shared_ptr<Buffer>> held;
    std::vector<Buffer*> places;
    for (const HostTensor& tensor : inputs) {
      SPARKLE_TRY(buffer, input_buffer(*placed.backend, tensor));
      held.push_back(std::move(buffer));
    }
    for (int t : plan.plan->outputs) {
      const int64_t bytes = plan.plan->tensors[static_cast<size_t>(t)].desc.bytes();
      SPARKLE_TRY(buffer, placed.backend->allocate(std::max<int64_t>(bytes, 1), MemoryKind::device));
      held.push_back(std::move(buffer));
    }
    for (const auto& buffer : held) places.push_back(buffer.get());
    SPARKLE_TRY(arenas, plan.take_arenas(*placed.backend));
    const RunSlots slots = slots_of(plan, arenas, places);
    SPARKLE_TRY(seconds, clock->seconds_of_run(*plan.segments[0].program, slots.device, burst));
    plan.give_back(std::move(arenas));
    return seconds;
  });
}

Result<Token> Session::submit(const std::vector<HostTensor>& shapes, std::vector<std::shared_ptr<Buffer>> input_buffers,
                              std::vector<std::shared_ptr<Buffer>> output_buffers, const Backend* owner, Token after) {
  return guard_memory("Running the model on these inputs",
                      [&] { return submit_plan(shapes, std::move(input_buffers), std::move(output_buffers), owner, after); });
}

Result<Token> Session::submit_plan(const std::vector<HostTensor>& shapes, std::vector<std::shared_ptr<Buffer>> input_buffers,
                                   std::vector<std::shared_ptr<Buffer>> output_buffers, const Backend* owner, Token after) {
  SPARKLE_TRY(placed, prepared(shapes));
  const auto& [backend, plan] = placed;
  if (owner && owner != backend.get())
    return Error{Reason::bad_usage, "The session has moved to another device; allocate the buffers there and run again."};
  const Plan& p = *plan->plan;
  if (input_buffers.size() != p.inputs.size() || output_buffers.size() != p.outputs.size())
    return Error{Reason::bad_input, "The model has " + std::to_string(p.inputs.size()) + " inputs and " +
                                        std::to_string(p.outputs.size()) + " outputs; one buffer is needed for each."};
  SPARKLE_TRY(arenas, plan->take_arenas(*backend));
  std::vector<Buffer*> places;
  const auto add = [&](const std::vector<std::shared_ptr<Buffer>>& buffers, const std::vector<int>& tensors) -> Status {
    for (size_t i = 0; i < buffers.size(); ++i) {
      const PlanTensor& t = p.tensors[static_cast<size_t>(tensors[i])];
      if (!buffers[i] || buffers[i]->bytes() < t.desc.bytes())
        return Error{Reason::bad_input,
                     "The buffer for '" + t.name + "' must hold " + std::to_string(t.desc.bytes()) + " bytes."};
      places.push_back(buffers[i].get());
    }
    return ok();
  };
  SPARKLE_CHECK(add(input_buffers, p.inputs));
  SPARKLE_CHECK(add(output_buffers, p.outputs));
  SPARKLE_CHECK(check_overlap(p, places));
  SubmitOptions options;
  options.after = after;
  // Everything the work touches stays alive until it is complete.
  options.keep_alive = std::make_shared<std::vector<std::shared_ptr<void>>>();
  for (auto& buffer : input_buffers) options.keep_alive->push_back(buffer);
  for (auto& buffer : output_buffers) options.keep_alive->push_back(buffer);
  options.keep_alive->push_back(plan);
  options.keep_alive->push_back(
      std::shared_ptr<void>(arenas.device.get(), [plan = placed.plan, arenas](void*) { plan->give_back(arenas); }));
  return submit_segments(*plan, *backend, slots_of(*plan, arenas, places), options);
}

int64_t Session::constant_bytes() const {
  if (parts_) return parts_->constant_bytes();
  const std::lock_guard lock(mutex_);
  return planner_->constant_memory().resident;
}

int64_t Session::cached_bytes() const {
  if (parts_) return parts_->cached_bytes();
  const std::lock_guard lock(mutex_);
  return cache_->held();
}

std::shared_ptr<Backend> Session::backend() const {
  if (parts_) return parts_->backend();
  const std::lock_guard lock(mutex_);
  return planner_->backend();
}

int64_t Session::peak_bytes(const Plan& plan) const {
  const std::lock_guard lock(mutex_);
  return sparkle::peak_bytes(plan, planner_->constant_memory());
}

}  // namespace sparkle
