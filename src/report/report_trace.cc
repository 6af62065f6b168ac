// One run as a Chrome trace (JSON, "Trace Event Format"). Times count from the call on the caller's clock, in microseconds; a
// device's own clock is set so that its last step ends when the caller heard of the end.
#include <algorithm>
#include <set>

#include "report/chrome_trace.h"
#include "report/report_text.h"

namespace sparkle {

using nlohmann::json;

namespace {

constexpr int kCaller = 0, kQueue = 1, kThreads = 2;  // tracks; those of threads count on

json args_of(const ReportStep& s) {
  return {{"what", s.what},
          {"algorithm", s.algorithm},
          {"variant", s.variant},
          {"schedule", s.schedule},
          {"unit", s.unit},
          {"reason", s.reason},
          {"flops", s.nominal_flops},
          {"executed_flops", s.executed_flops},
          {"bytes", s.bytes},
          {"predicted_us", s.predicted_seconds * 1e6},
          {"roof_us", s.roof_seconds * 1e6}};
}

}  // namespace

std::string model_report_trace(const ModelReport& r) {
  const RunReport& run = r.traced;
  const size_t steps = std::min(r.steps.size(), run.steps.size());
  const auto end_of = [&](size_t i) { return run.steps[i].begin + run.steps[i].seconds; };
  const double submitted = run.before_seconds, complete = submitted + run.seconds;
  const double first = r.clock_of_device && steps > 0 ? std::max(submitted, complete - end_of(steps - 1)) : submitted;
  ChromeTrace trace;
  trace.process("sparkle: " + r.model + " on " + r.device.name);
  trace.name(kCaller, "caller");
  trace.name(kQueue, r.clock_of_device ? "compute queue (the device's clock)" : "steps");
  trace.span(kCaller, "run", "run", 0, complete + run.after_seconds);
  trace.span(kCaller, "inputs", "run", 0, submitted);
  trace.span(kCaller, "submit and wait", "run", submitted, complete);
  trace.span(kCaller, "outputs", "run", complete, complete + run.after_seconds);
  std::vector<bool> shared(steps, false);  // among the threads: the others ran in the caller's alone
  std::set<int> workers;
  for (const TaskSpan& task : run.tasks) {
    workers.insert(task.worker);
    if (static_cast<size_t>(task.step) < steps) shared[static_cast<size_t>(task.step)] = true;
  }
  const bool in_caller = !r.clock_of_device;  // steps that were not shared
  if (in_caller) workers.insert(0);
  for (const int worker : workers)
    trace.name(kThreads + worker, worker == 0 ? "thread 0 (the caller's)" : "thread " + std::to_string(worker));
  for (size_t i = 0; i < steps; ++i) {
    const double begin = first + run.steps[i].begin, end = first + end_of(i);
    trace.span(kQueue, r.steps[i].name, "step", begin, end, args_of(r.steps[i]));
    trace.memory(begin, r.steps[i].live_bytes);
    if (in_caller && !shared[i]) trace.span(kThreads, r.steps[i].name, "task", begin, end, {{"step", i}});
  }
  if (steps > 0) trace.memory(first + end_of(steps - 1), 0);
  for (const TaskSpan& task : run.tasks)
    if (static_cast<size_t>(task.step) < steps)
      trace.span(kThreads + task.worker, r.steps[static_cast<size_t>(task.step)].name, "task", first + task.begin,
                 first + task.end, {{"step", task.step}});
  if (run.tasks_left_out > 0)
    trace.note(complete, std::to_string(run.tasks_left_out) + " tasks of threads are not drawn; steps are whole");
  return trace.text("tasks left out", run.tasks_left_out);
}

}  // namespace sparkle
