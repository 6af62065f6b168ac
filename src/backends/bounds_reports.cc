#include "backends/bounds_reports.h"

#include <algorithm>

namespace sparkle {

std::optional<Error> take_bounds_report(std::span<BoundsReports> list, const std::vector<ReportingLaunch>& launches) {
  std::optional<Error> error;
  for (size_t i = 0; i < launches.size(); ++i) {
    if (list[i].first == UINT32_MAX) continue;
    // The first of all was written when it was the first so far; only more than kMostSeen threads at the same moment, each of
    // them first, could have written over it.
    int64_t value = 0;
    for (uint32_t s = 0; s < std::min(list[i].taken, kMostSeen); ++s)
      if (const auto& seen = list[i].seen[s]; seen.number == list[i].first)
        value = static_cast<int64_t>(static_cast<uint64_t>(static_cast<uint32_t>(seen.high)) << 32 |
                                     static_cast<uint32_t>(seen.low));
    if (!error) {
      error = launches[i].error(list[i].first, value);
      error->message = "Node '" + launches[i].node + "': " + error->message + ".";
    }
    list[i] = BoundsReports{};
  }
  return error;
}

}  // namespace sparkle
