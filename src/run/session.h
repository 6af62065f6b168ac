// Session: a model ready to run on a backend. Plans are made for the input shapes that come, kept in a cache bounded in bytes;
// constants are packed once and shared by all plans. One Session serves any number of threads, each run has an arena of its
// own.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "plan/plan.h"
#include "plan/tuning_store.h"
#include "prepare/compiled_model.h"
#include "prepare/constant_store.h"

namespace sparkle {

struct SessionOptions : PlanSettings {
  int64_t plan_cache_bytes = int64_t{256} << 20;  // what is kept for shapes seen before
  std::shared_ptr<const TuningStore> tuning;

  // As long as these options live.
  PlanOptions plan() const { return {static_cast<const PlanSettings&>(*this), tuning.get()}; }
};

// What a caller asks for against what a file was compiled with. Options left at their defaults ask for nothing, and any memory
// budget may be given. Errors: bad_usage.
Status check_options(const CompiledModel& model, const SessionOptions& asked);

struct SessionInput {
  std::string name;
  DType dtype = DType::f32;
  Dims shape;  // -1 where the model leaves a size open
  std::vector<std::string> axis_names;
  bool rank_known = true;
  bool by_value = false;  // shapes depend on its value (Reshape's shape, Resize's scales ...)
};

// Measured time of one step of a run, beside its prediction in the plan.
struct StepReport {
  double seconds = 0;
};
struct RunReport {
  std::shared_ptr<const Plan> plan;  // its constants have no bytes any more where the session needed them only once
  std::vector<StepReport> steps;     // filled when timestamps were asked for
  double seconds = 0;                // submit to completion, host clock
};

// Reads a session's model once more, as it was when the session was opened.
using GraphSource = std::function<Result<Graph>()>;

class CacheBytes;
class PreparedPlan;

class Session {
 public:
  // Takes the graph as the reader gives it; simplifies it. `again`: where its weights come from for move_to once they have been
  // let go; without it they are kept where the device can be lost. Errors: whatever reading, rewriting and planning say.
  static Result<std::unique_ptr<Session>> open(Graph graph, std::shared_ptr<Backend> backend, const SessionOptions& options,
                                               GraphSource again = {});
  // A compiled model: its shapes, and the options it was compiled with. Errors: device_unusable where it was compiled for
  // another machine, bad_usage where an option asks for something else than the file holds.
  static Result<std::unique_ptr<Session>> open(std::shared_ptr<const CompiledModel> model, std::shared_ptr<Backend> backend,
                                               const SessionOptions& options);
  ~Session();

  const std::vector<SessionInput>& inputs() const { return inputs_; }
  const std::vector<SessionInput>& outputs() const { return outputs_; }

  // Runs the model on one tensor per input, in order. Errors: bad_input naming the input, and what planning says.
  Result<std::vector<HostTensor>> run(const std::vector<HostTensor>& inputs, RunReport* report = nullptr,
                                      bool timestamps = false);

  // The same, with every byte that the run may write - arena, outputs, on both sides - wiped before: what comes back was
  // computed by this run, and read nothing that another one left behind. For checks.
  Result<std::vector<HostTensor>> run_wiped(const std::vector<HostTensor>& inputs, std::byte wiped_to);

  // The same as run() into tensors of the caller, whose types and shapes are those of the plan's outputs. Rows of an open
  // output that were not found begin with -1.
  Status run_into(const std::vector<HostTensor>& inputs, const std::vector<HostTensor>& outputs, RunReport* report = nullptr,
                  bool timestamps = false);

  // Goes on with another backend, as after a lost device: plans, packed constants and arenas of the one before are dropped, and
  // the next run plans anew. Runs that have begun end where they began. A tuning store of another device is left out from here
  // on. Errors leave the session where it was: device_unusable for a compiled model of another machine, bad_usage where a
  // model given in memory has let its weights go, and what reading the model again says.
  Status move_to(std::shared_ptr<Backend> backend);

  // The plan for these inputs, made and compiled if new (weights packed), nothing run. Only shapes and types matter: tensors
  // may come without memory, except for inputs that are needed by value.
  Result<std::shared_ptr<const Plan>> prepare(const std::vector<HostTensor>& inputs);

  // Runs on buffers of the backend, dense and row-major, without a copy; asynchronous. One buffer per input and output in
  // order. Outputs whose rows the data tells (Plan::open) fill the rows that there are not with -1. `owner`: the backend of
  // the buffers where the session may move meanwhile; bad_usage where it is no longer the session's.
  Result<Token> submit(const std::vector<HostTensor>& shapes, std::vector<std::shared_ptr<Buffer>> input_buffers,
                       std::vector<std::shared_ptr<Buffer>> output_buffers, const Backend* owner = nullptr);

  // Bytes held: constants (packed, and the model's own where they are still needed), and plans in the cache (arenas, programs,
  // constants that one shape alone needs), which stay within plan_cache_bytes unless the newest plan alone is larger.
  int64_t constant_bytes() const;
  int64_t cached_bytes() const;
  // What a run with this plan occupies at its peak: arena, constants, inputs, outputs - or constants alone, while the model's
  // own and packed ones lie side by side.
  int64_t peak_bytes(const Plan& plan) const;
  std::shared_ptr<Backend> backend() const;

 private:
  Session() = default;
  // A plan and the backend it was made on: what a run holds wherever the session moves meanwhile. The plan goes first.
  struct Placed {
    std::shared_ptr<Backend> backend;
    std::shared_ptr<PreparedPlan> plan;
  };
  static Result<std::unique_ptr<Session>> opened(Graph graph, std::shared_ptr<Backend> backend, const SessionOptions& options,
                                                 GraphSource again);
  Result<Token> submit_plan(const std::vector<HostTensor>& shapes, std::vector<std::shared_ptr<Buffer>> input_buffers,
                            std::vector<std::shared_ptr<Buffer>> output_buffers, const Backend* owner);
  Result<std::vector<HostTensor>> run_plan(const Placed& placed, const std::vector<HostTensor>& inputs, RunReport* report,
                                           bool timestamps, std::optional<std::byte> wiped_to = {});
  Result<Placed> prepared(const std::vector<HostTensor>& inputs);
  Status execute(const Placed& placed, const std::vector<HostTensor>& inputs, const std::vector<HostTensor>& outputs,
                 RunReport* report, bool timestamps, std::optional<std::byte> wiped_to = {});
  Result<std::shared_ptr<PreparedPlan>> build(const std::vector<HostTensor>& inputs);
  struct Planned;
  Result<Planned> plan_for(const std::vector<HostTensor>& inputs, int64_t memory_budget) const;
  Result<Planned> plan_within_budget(const std::vector<HostTensor>& inputs) const;
  Originals originals_of(const Planned& planned) const;
  Status pack(PreparedPlan& prepared, Planned planned);
  Status pack_all(PreparedPlan& prepared, std::span<const ConstantUse> uses, const Originals& of_model);
  bool lets_weights_go() const;
  Result<Graph> graph_again() const;
  Status go_to(std::shared_ptr<Backend> backend);
  Status take_packed(PreparedPlan& prepared, std::span<const ConstantUse> uses);
  void describe(const Graph& graph);
  Status check_budget(const Plan& plan, const ConstantMemory& memory) const;
  int64_t bytes_beside_constants(const Plan& plan) const;
  int64_t needed_bytes(const Plan& plan, const ConstantMemory& memory) const;
  Status check_inputs(const std::vector<HostTensor>& inputs) const;
  Status check_values(const std::vector<HostTensor>& inputs) const;

  Graph graph_;
  GraphSource again_;
  bool let_go_ = false;                            // the graph and its weights
  std::shared_ptr<const CompiledModel> compiled_;  // instead of the graph
  std::shared_ptr<Backend> backend_;
  SessionOptions options_;
  std::vector<SessionInput> inputs_, outputs_;
  bool fixed_ = false;          // all input shapes are: there will be one plan
  std::optional<Graph> bound_;  // the graph for them, until that plan is made
  std::optional<Error> broken_;
  std::shared_ptr<ConstantStore> constants_;
  ConstantMemory constant_memory_;
  std::shared_ptr<CacheBytes> cache_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<PreparedPlan>> plans_;
  std::vector<std::string> plan_order_;  // least recently used first
};

}  // namespace sparkle
