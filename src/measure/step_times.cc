#include "measure/step_times.h"

#include <algorithm>
#include <numeric>

#include "base/median.h"

namespace sparkle {

namespace {

constexpr int kProbes = 8;

}  // namespace

std::vector<double> typical_steps(std::vector<std::vector<double>> runs) {
  if (runs.empty()) return {};
  const auto total = [](const std::vector<double>& run) { return std::accumulate(run.begin(), run.end(), 0.0); };
  std::sort(runs.begin(), runs.end(), [&](const auto& a, const auto& b) { return total(a) < total(b); });
  const size_t outer = runs.size() / 4;
  std::vector<double> steps(runs[0].size());
  for (size_t run = outer; run < runs.size() - outer; ++run)
    for (size_t i = 0; i < steps.size(); ++i) steps[i] += runs[run][i] / static_cast<double>(runs.size() - 2 * outer);
  return steps;
}

Result<StepTimes> time_steps(Session& session, const std::vector<HostTensor>& inputs, double seconds, int least,
                             const std::function<void()>& probe, const std::function<Status()>& between) {
  const auto may_go_on = [&] { return between ? between() : ok(); };
  StepTimes times;
  std::vector<std::vector<double>> runs;
  std::vector<double> wholes;
  double spent = 0;
  int probes = 0;
  {
    SPARKLE_CHECK(may_go_on());
    SPARKLE_TRY(warm, session.run(inputs));  // plans, packs, touches all memory
  }
  while (times.runs < least || spent < seconds) {
    if (probe && (times.runs * kProbes >= probes * least || spent * kProbes >= probes * seconds) && probes < kProbes) {
      SPARKLE_CHECK(may_go_on());
      probe(), ++probes;
      SPARKLE_CHECK(may_go_on());
      SPARKLE_TRY(warm, session.run(inputs));
    }
    // In turns, and each kind first every other time: clocks wander.
    for (const bool timestamps : {times.runs % 2 == 0, times.runs % 2 != 0}) {
      SPARKLE_CHECK(may_go_on());
      RunReport report;
      SPARKLE_TRY(outputs, session.run(inputs, &report, timestamps));
      spent += report.seconds;
      times.plan = report.plan;
      if (!timestamps) {
        wholes.push_back(report.seconds);
        continue;
      }
      runs.emplace_back();
      for (const StepReport& step : report.steps) runs.back().push_back(step.seconds);
    }
    ++times.runs;
  }
  times.steps = typical_steps(std::move(runs));
  times.whole_seconds = median(std::move(wholes));
  return times;
}

}  // namespace sparkle
