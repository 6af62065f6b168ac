// The roofs beside a whole plan: the peaks of the units that its steps use and the bandwidths of all levels, probed between
// runs, and each step's rates against them.
#pragma once

#include "plan/plan.h"
#include "run/roof_judge.h"

namespace sparkle {

class PlanRoofs {
 public:
  PlanRoofs(Backend& backend, const Plan& plan);
  void take();  // some ten milliseconds
  RoofVerdict judge(const PlanStep& step, double seconds) const;
  // The device with what was probed in the place of rates measured some day.
  Device device() const;

 private:
  std::vector<double> peaks_of(const std::string& unit) const;

  Backend& backend_;
  std::vector<std::string> units_;
  std::vector<std::vector<double>> peaks_, bandwidths_;  // per unit, per level
};

// What a step must move: results, and operands of families that read all of them, each once.
double compulsory_bytes(const PlanStep& step);

}  // namespace sparkle
