// How long each step of a model takes beside the whole: runs with the device's timestamps and runs without, in turns.
#pragma once

#include <functional>

#include "run/session.h"

namespace sparkle {

struct StepTimes {
  std::shared_ptr<const Plan> plan;
  std::vector<double> steps;  // typical_steps() of the runs with timestamps, one per step of the plan
  double whole_seconds = 0;   // median of runs that kept no timestamps, submission to completion by the host's clock
  int runs = 0;               // of each kind
};

// What the steps of a typical run take: of the half of the runs whose totals lie in the middle, each step's mean. They add up
// to such a run. Medians of each step do not where something disturbs another step in each run: they leave all of it out, and
// the whole never does.
std::vector<double> typical_steps(std::vector<std::vector<double>> runs);

// At least `least` runs of each kind, more while they take less than `seconds` together. `probe`, where it is given, is called
// before them and some times among them, each time followed by a run that brings back what it pushed out of the caches.
// `between`, where it is given, is asked before each run and probe, and its error ends the measurement. Errors: those of
// Session::run.
Result<StepTimes> time_steps(Session& session, const std::vector<HostTensor>& inputs, double seconds = 1, int least = 5,
                             const std::function<void()>& probe = {}, const std::function<Status()>& between = {});

}  // namespace sparkle
