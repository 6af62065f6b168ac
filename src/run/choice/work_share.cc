#include "run/choice/work_share.h"

#include <algorithm>
#include <cmath>

namespace sparkle {

bool takes_next(const std::vector<Worker>& workers, size_t me, int64_t left) {
  const Worker& own = workers[me];
  if (own.gone) return false;
  if (left < 0 || own.seconds <= 0) return true;
  // What the others do in a second; what they have begun comes first.
  double rate = 0, begun = 0, soonest = INFINITY;
  for (size_t i = 0; i < workers.size(); ++i) {
    if (i == me || workers[i].gone || workers[i].seconds <= 0) continue;
    rate += 1 / workers[i].seconds;
    begun += workers[i].under_way;
    soonest = std::min(soonest, (workers[i].under_way + 1) * workers[i].seconds);
  }
  if (rate <= 0) return true;
  const double mine = (own.under_way + 1) * own.seconds, together = (begun + static_cast<double>(left)) / rate;
  // One item is no work for two.
  return mine <= std::max(together, soonest);
}

double efficiency(const std::vector<double>& seconds_alone, int64_t items, double seconds_together) {
  double rate = 0;
  for (const double s : seconds_alone)
    if (s > 0) rate += 1 / s;
  return rate > 0 && seconds_together > 0 ? static_cast<double>(items) / rate / seconds_together : 0;
}

}  // namespace sparkle
