// The roofs beside a whole plan: the peaks of the units that its steps use and the bandwidths of all levels, probed between
// runs, and each step's rates against them.
#pragma once

#include "plan/plan.h"
#include "measure/roofs/roof_judge.h"

namespace sparkle {

class PlanRoofs {
 public:
  PlanRoofs(Backend& backend, const Plan& plan);
  void take();  // some ten milliseconds
  RoofVerdict judge(const PlanStep& step, double seconds) const;
  // The device with what was probed in the place of rates measured some day.
  Device device() const;

 private:
  // A level, and where its bandwidth goes by the size of the working set, one of the sizes that steps have.
  struct Memory {
    size_t level;
    double bytes;
    std::vector<double> rates;
  };
  std::vector<double> peaks_of(const std::string& unit) const;
  double size_class(double bytes) const;  // 0 where the level alone tells

  Backend& backend_;
  bool by_size_;
  std::vector<std::string> units_;
  std::vector<std::vector<double>> peaks_;  // per unit
  std::vector<Memory> memories_;
};

// What a machine allows for a step at its best: the operations that it executes, without padding, or its compulsory traffic,
// whichever takes longer, and which of the two it is; nothing for a launch.
Cost roof_of(const PlanStep& step, const Device& device);
inline double roof_seconds(const PlanStep& step, const Device& device) { return roof_of(step, device).seconds; }
// Families whose footprints count multiplications and additions, not functions by what they cost.
bool counts_products(Family family);
// What a step must move: results, and operands of families that read all of them, each once.
double compulsory_bytes(const PlanStep& step);

}  // namespace sparkle
