// What a chain of layers takes on a device, by the cost model of `check`: its sums of products, and the copies where padding
// begins and ends. What lies between - poolings, sums - is not counted.
#pragma once

#include <map>
#include <tuple>

#include "fix/pad/plan.h"

namespace sparkle::fix {

class PredictedChain {
 public:
  // `members`: of plan.products. Both must outlive this.
  PredictedChain(const PadPlan& plan, const PadTarget& target, const std::vector<size_t>& members);

  double before_seconds() const { return before_; }
  // With the plan's channels as far as they have grown now.
  double seconds();
  double before_of(size_t product) { return of(product, plan_.products[product].problem); }
  double after_of(size_t product) { return of(product, plan_.padded(plan_.products[product])); }
  double border_seconds() const;

 private:
  double of(size_t product, const Problem& problem);
  const PadPlan& plan_;
  const PadTarget& target_;
  const std::vector<size_t>& members_;
  std::vector<const PadPlan::Border*> borders_;  // of the members' runs
  std::map<std::tuple<size_t, int64_t, int64_t>, double> known_;
  double before_ = 0;
};

}  // namespace sparkle::fix
