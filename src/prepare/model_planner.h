// ModelPlanner: the one door from a model to what can run. It binds shapes, plans, has the device try the kernels, plans again
// without those that failed and in less memory where the budget asks for it, packs the weights, and hands out prepared plans.
// Sessions keep and run these, compiled files store them; neither decides anything. One caller at a time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "prepare/constant_store.h"
#include "prepare/kernels.h"
#include "prepare/model_inputs.h"
#include "prepare/prepared_plan.h"
#include "prepare/session_options.h"

namespace sparkle {

// Reads a model once more, as it was when its planner was made.
using GraphSource = std::function<Result<Graph>()>;

// A plan with its kernels, all of which may be used on the device. Nothing is packed yet.
struct PlannedModel {
  Plan plan;                      // its steps have the workspace that the planner foresaw
  Graph bound;                    // what the plan was made of; empty for a compiled model
  std::shared_ptr<Backend> host;  // that the plan was made with, whether it has steps of its or not; nullptr: with none
  Kernels kernels;                // one per step; none for transfers
  std::vector<ConstantUse> uses;  // of the plan's constants, in the order of steps and of their inputs
  PlanSettings settings;          // what the plan was made by in the end: the budget may be a smaller one
};

// Where packed weights will lie: what they take beside the model's own differs.
enum class WeightsIn : uint8_t { memory, file };

class ModelPlanner {
 public:
  // Takes the graph as the reader gives it; simplifies it. `again`: where its weights come from for move_to once they have been
  // let go; without it they are kept where the device can be lost. Errors: what reading, rewriting and binding say.
  static Result<std::unique_ptr<ModelPlanner>> make(Graph graph, std::shared_ptr<Backend> backend,
                                                    const SessionOptions& options, GraphSource again = {});
  // A compiled model: its shapes, and the options it was compiled with. Errors: device_unusable where it was compiled for
  // another machine, bad_usage where an option asks for something else than the file holds.
  static Result<std::unique_ptr<ModelPlanner>> make(std::shared_ptr<const CompiledModel> model,
                                                    std::shared_ptr<Backend> backend, const SessionOptions& options);

  const std::vector<SessionInput>& inputs() const { return inputs_; }
  const std::vector<SessionInput>& outputs() const { return outputs_; }
  const std::shared_ptr<Backend>& backend() const { return backend_; }

  // For inputs that check_inputs() accepts; only shapes and types matter, and the values of inputs that decide shapes. Errors:
  // what binding, planning and compiling say; over_memory_budget with the bytes needed.
  Result<PlannedModel> plan(const std::vector<HostTensor>& inputs, WeightsIn where) const;
  // That, its constants packed and its launches recorded: ready to run.
  Result<std::shared_ptr<PreparedPlan>> prepare(const std::vector<HostTensor>& inputs);

  // What of a plan of this planner's falls back.
  std::vector<FallbackEvent> fallbacks_in(const Plan& plan) const { return fallbacks_of(plan, options_); }

  // What constants occupy: packed ones, and the model's own where they are still needed.
  const ConstantMemory& constant_memory() const { return constant_memory_; }
  // Gives up packed constants that no prepared plan uses any more.
  void collect();

  // What runs the host's steps beside the backend. Opened for the first plan that has such steps.
  struct HostSide {
    std::shared_ptr<Backend> backend;
    std::shared_ptr<ConstantStore> constants;
  };

  // Goes on with another backend; nothing packed stays. What it gives up comes back, to be destroyed where no lock is held, the
  // backend last. Errors leave the planner as it was: those of Session::move_to.
  struct Past {
    std::shared_ptr<Backend> backend;
    HostSide host;
    std::shared_ptr<ConstantStore> constants;
  };
  Result<Past> move_to(std::shared_ptr<Backend> backend);

 private:
  ModelPlanner(std::shared_ptr<Backend> backend, const SessionOptions& options);
  Result<Graph> bound_for(const std::vector<HostTensor>& inputs) const;
  Status open_host() const;
  Result<Plan> plan_now(PlannedModel& planned) const;
  Result<Plan> plan_of_file() const;
  Status plan_bound(PlannedModel& planned) const;
  Result<ConstantMemory> foreseen(std::span<const PlanConstant> constants, std::span<const ConstantUse> uses,
                                  const Originals& originals, bool release) const;
  Result<ConstantMemory> memory_of(const PlannedModel& planned, WeightsIn where) const;
  Originals originals_of(const PlannedModel& planned) const;
  bool lets_weights_go() const;
  Status take_packed(PreparedPlan& prepared, std::span<const ConstantUse> uses);
  Status pack(PreparedPlan& prepared, PlannedModel planned);
  Status pack_all(PreparedPlan& prepared, std::span<const ConstantUse> uses, const Originals& of_model);
  Result<Graph> graph_again() const;

  Graph graph_;
  GraphSource again_;
  bool let_go_ = false;                            // the graph and its weights
  std::shared_ptr<const CompiledModel> compiled_;  // instead of the graph
  std::shared_ptr<Backend> backend_;
  mutable HostSide host_;  // empty until a plan needs it
  SessionOptions options_;
  std::vector<SessionInput> inputs_, outputs_;
  bool fixed_ = false;          // all input shapes are: there will be one plan
  std::optional<Graph> bound_;  // the graph for them, until that plan is made
  std::optional<Error> broken_;
  std::shared_ptr<ConstantStore> constants_;
  ConstantMemory constant_memory_;
};

// What a run with this plan occupies at its peak: arena, constants, inputs, outputs - or constants alone, while the model's own
// and packed ones lie side by side.
int64_t peak_bytes(const Plan& plan, const ConstantMemory& memory);
// The same before it is recorded, with the workspace that its kernels ask for.
int64_t peak_bytes(const PlannedModel& planned, const ConstantMemory& memory);

}  // namespace sparkle
