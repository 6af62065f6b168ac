#include "measure/step_times.h"

#include <algorithm>

#include "base/median.h"

namespace sparkle {

namespace {

constexpr int kProbes = 8;

}  // namespace

Result<StepTimes> time_steps(Session& session, const std::vector<HostTensor>& inputs, double seconds, int least,
                             const std::function<void()>& probe) {
  StepTimes times;
  std::vector<std::vector<double>> steps;
  std::vector<double> wholes;
  double spent = 0;
  int probes = 0;
  {
    SPARKLE_TRY(warm, session.run(inputs));  // plans, packs, touches all memory
  }
  while (times.runs < least || spent < seconds) {
    if (probe && (times.runs * kProbes >= probes * least || spent * kProbes >= probes * seconds) && probes < kProbes) {
      probe(), ++probes;
      SPARKLE_TRY(warm, session.run(inputs));
    }
    // In turns, and each kind first every other time: clocks wander.
    for (const bool timestamps : {times.runs % 2 == 0, times.runs % 2 != 0}) {
      RunReport report;
      SPARKLE_TRY(outputs, session.run(inputs, &report, timestamps));
      spent += report.seconds;
      times.plan = report.plan;
      if (!timestamps) {
        wholes.push_back(report.seconds);
        continue;
      }
      steps.resize(report.steps.size());
      for (size_t i = 0; i < report.steps.size(); ++i) steps[i].push_back(report.steps[i].seconds);
    }
    ++times.runs;
  }
  for (std::vector<double>& of_step : steps) times.steps.push_back(median(std::move(of_step)));
  times.whole_seconds = median(std::move(wholes));
  return times;
}

}  // namespace sparkle
