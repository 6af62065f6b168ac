// Session: a model ready to run on a backend. Prepared plans come from its planner for the input shapes that are given and are
// kept in a cache bounded in bytes. One Session serves any number of threads, each run has an arena of its own.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/burst_clock.h"
#include "base/system/tracing_executor.h"
#include "prepare/model_planner.h"
#include "run/parts/parts.h"

namespace sparkle {

// Measured time of one step of a run, beside its prediction in the plan.
struct StepReport {
  double seconds = 0;
  double begin = 0;  // since the submission, or since the first step by a device's own clock
};
struct RunReport {
  std::shared_ptr<const Plan> plan;  // none where the session runs in parts; its constants have no bytes any more where the
                                     // session needed them only once
  std::vector<StepReport> steps;     // filled when timestamps were asked for
  double seconds = 0;                // submit to completion, host clock
  // Of run_traced() alone.
  double before_seconds = 0, after_seconds = 0;  // inputs handed over, and outputs brought back, host clock
  std::vector<TaskSpan> tasks;                   // of the host's threads, where the backend tells (backends/task_trace.h)
  int64_t tasks_left_out = 0;                    // beyond these
};

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

  const std::vector<SessionInput>& inputs() const { return parts_ ? parts_->inputs() : planner_->inputs(); }
  const std::vector<SessionInput>& outputs() const { return parts_ ? parts_->outputs() : planner_->outputs(); }

  // Whether it runs in parts, for paths and shapes that only the data tells (run/parts): run() and run_into() take it then,
  // whatever asks for one plan - prepare(), submit() - is bad_usage, which says why.
  bool in_parts() const { return parts_ != nullptr; }
  Status has_single_plan() const { return parts_ ? Status(parts_->no_single_plan()) : ok(); }

  // Runs the model on one tensor per input, in order. Errors: bad_input naming the input, and what planning says.
  Result<std::vector<HostTensor>> run(const std::vector<HostTensor>& inputs, RunReport* report = nullptr,
                                      bool timestamps = false);

  // The same, with every byte that the run may write - arena, outputs, on both sides - wiped before: what comes back was
  // computed by this run, and read nothing that another one left behind. Where outputs are NaN and memory was wiped to numbers,
  // it runs once more step by step, the elements of each wiped before it: NaN may lie there from an earlier step. For checks.
  Result<std::vector<HostTensor>> run_wiped(const std::vector<HostTensor>& inputs, std::byte wiped_to);

  // The same with timestamps, and with when each task of the host's threads ran: for a picture of one run, not for times.
  // Keeping them takes time between the tasks.
  Result<std::vector<HostTensor>> run_traced(const std::vector<HostTensor>& inputs, RunReport& report);

  // What a run takes by the device's own clock, one after the other (backends/burst_clock.h): seconds of the whole plan,
  // without the host's part, inputs and outputs staying on the device. 0 where that cannot be told: the device has no such
  // clock, the host has steps, or the model runs in parts. `burst` says how many runs. Errors: those of run().
  Result<double> seconds_of_run(const std::vector<HostTensor>& inputs, const Burst& burst);

  // The same as run() into tensors of the caller, whose types and shapes are those of the plan's outputs. Rows of an open
  // output that were not found begin with -1.
  Status run_into(const std::vector<HostTensor>& inputs, const std::vector<HostTensor>& outputs, RunReport* report = nullptr,
                  bool timestamps = false);

  // Goes on with another backend, as after a lost device: plans, packed constants and arenas of the one before are dropped, and
  // the next run plans anew. Runs that have begun end where they began. A tuning store of another device is left out from here
  // on. Errors leave the session where it was: device_unusable for a compiled model of another machine, bad_usage where a
  // model given in memory has let its weights go, and what reading the model again says.
  Status move_to(std::shared_ptr<Backend> backend);
  // After `error` of a run on `failed`: moves to SessionOptions::next_device, once, and says so among events(); ok where a run
  // may be tried again, also because the session has moved meanwhile. run(), run_into(), prepare() and pipelines do this on
  // their own. Errors: `error`, with why it cannot go on elsewhere.
  Status recover(const Error& error, const Backend* failed);
  // What was done in another way than asked for, so far; the list lives as long as the session.
  const EventList& events() const { return events_; }
  // Of who shares work among several sessions.
  void add_event(FallbackEvent event) { events_.add(std::move(event), fallback_); }

  // The plan for these inputs, made and compiled if new (weights packed), nothing run. Only shapes and types matter: tensors
  // may come without memory, except for inputs that are needed by value.
  Result<std::shared_ptr<const Plan>> prepare(const std::vector<HostTensor>& inputs);

  // Runs on buffers of the backend, dense and row-major, without a copy; asynchronous. One buffer per input and output in
  // order. Outputs whose rows the data tells (Plan::open) fill the rows that there are not with -1. `owner`: the backend of
  // the buffers where the session may move meanwhile; bad_usage where it is no longer the session's. It starts once `after`, of
  // the same backend, is complete.
  Result<Token> submit(const std::vector<HostTensor>& shapes, std::vector<std::shared_ptr<Buffer>> input_buffers,
                       std::vector<std::shared_ptr<Buffer>> output_buffers, const Backend* owner = nullptr, Token after = {});

  // Bytes held: constants (packed, and the model's own where they are still needed), and plans in the cache (arenas, programs,
  // constants that one shape alone needs), which stay within plan_cache_bytes unless the newest plan alone is larger.
  int64_t constant_bytes() const;
  int64_t cached_bytes() const;
  // What a run with this plan occupies at its peak: arena, constants, inputs, outputs - or constants alone, while the model's
  // own and packed ones lie side by side.
  int64_t peak_bytes(const Plan& plan) const;
  std::shared_ptr<Backend> backend() const;

 private:
  Session(std::unique_ptr<ModelPlanner> planner, const SessionOptions& options, bool compiled);
  Session(std::unique_ptr<ModelInParts> parts, const SessionOptions& options);
  Result<std::vector<HostTensor>> run_parts(const std::vector<HostTensor>& inputs, RunReport* report);
  Status run_parts_into(const std::vector<HostTensor>& inputs, const std::vector<HostTensor>& outputs, RunReport* report);
  // A plan and the backend it was made on: what a run holds wherever the session moves meanwhile. The plan goes first.
  struct Placed {
    std::shared_ptr<Backend> backend;
    std::shared_ptr<PreparedPlan> plan;
  };
  Result<Token> submit_plan(const std::vector<HostTensor>& shapes, std::vector<std::shared_ptr<Buffer>> input_buffers,
                            std::vector<std::shared_ptr<Buffer>> output_buffers, const Backend* owner, Token after);
  struct Wiping {
    std::byte to{};
    bool each_step = false;  // too, not only before the first
  };
  enum class Keep : uint8_t { nothing, steps, tasks };  // of a run's times
  Result<std::vector<HostTensor>> run_plan(const Placed& placed, const std::vector<HostTensor>& inputs, RunReport* report,
                                           Keep keep, std::optional<Wiping> wiping = {});
  Result<Placed> prepared(const std::vector<HostTensor>& inputs);
  Result<Placed> placed_for(const std::vector<HostTensor>& inputs, std::vector<FallbackEvent>& fallbacks);
  // attempt(), and once more where the device failed and the session goes on with another.
  template <class Attempt>
  auto with_recovery(Attempt&& attempt) -> decltype(attempt()) {
    const std::shared_ptr<Backend> before = backend();
    auto result = attempt();
    if (result.ok() || !is_of_the_device(result.error())) return result;
    if (Status recovered = recover(result.error(), before.get()); !recovered.ok()) return recovered.take_error();
    return attempt();
  }
  Status execute(const Placed& placed, const std::vector<HostTensor>& inputs, const std::vector<HostTensor>& outputs,
                 RunReport* report, Keep keep, std::optional<Wiping> wiping = {});
  Status go_to(std::shared_ptr<Backend> backend);
  Status check_values(const std::vector<HostTensor>& inputs) const;

  const int64_t plan_cache_bytes_;
  const bool compiled_;
  const Fallback fallback_;
  const std::function<Result<std::shared_ptr<Backend>>(const Error&)> next_device_;
  EventList events_;
  std::mutex recovery_;                        // taken before mutex_
  bool recovered_ = false;                     // since the caller opened or moved the session
  const std::unique_ptr<ModelInParts> parts_;  // instead of all below
  mutable std::mutex mutex_;                   // of all below
  std::unique_ptr<ModelPlanner> planner_;
  std::shared_ptr<CacheBytes> cache_;
  std::map<std::string, std::shared_ptr<PreparedPlan>> plans_;
  std::vector<std::string> plan_order_;  // least recently used first
};

}  // namespace sparkle
