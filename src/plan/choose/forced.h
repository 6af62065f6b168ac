// What was forced by name and did not come about: an algorithm or a kernel variant that cannot support a layer leaves it to the
// others, for a network has layers of many kinds. That is said, layer by layer; for one layer alone it is refused.
#pragma once

#include "plan/choose/choose.h"

namespace sparkle {

// A sentence per reason, with the layers that it keeps from the forced algorithm or variant; none where all is as forced.
std::vector<std::string> not_as_forced(const Plan& plan, const PlanSettings& settings);

// Those sentences as warnings of the log (base/log.h).
void log_not_as_forced(const Plan& plan, const PlanSettings& settings);

// For one layer, where nothing else could be as forced. Errors: bad_usage with the reason.
Status check_as_forced(const Choice& choice, const std::string& layer, const PlanSettings& settings);

}  // namespace sparkle
