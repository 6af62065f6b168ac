// Cost: predicted seconds of one stage from its Footprint and the Device, and what binds. A roofline over all memory levels:
// the slowest of arithmetic and traffic per level, plus the fixed cost of a step. Knows no family's fields.
#pragma once

#include "families/family.h"
#include "plan/plan.h"

namespace sparkle {

// `pace`: KernelPace::ratio of the schedule's variant, by which arithmetic and calls take longer.
Cost cost_of(const Footprint& footprint, const Schedule& schedule, const Device& device, double pace = 1);
// Sums seconds; the larger part names the bound.
Cost add(const Cost& a, const Cost& b);

}  // namespace sparkle
