// Which constant weights of a draft's anchors fit types of 16 bits: read off their values, or off the graph where it is known
// there (compiled files hold no values).
#pragma once

#include "plan/draft.h"

namespace sparkle {

// A draft whose anchors know their weights' fit. Ranges are judged where rounded weights may be chosen at all: else rounded
// stands for whatever is not exact.
void judge_weights(Draft& draft, const PlanOptions& options);

}  // namespace sparkle
