// What a candidate for a layer may be off by, on the operands that measurements use.
#pragma once

#include "plan/choose/choose.h"

namespace sparkle {

// Products per output.
double depth_of(const Problem& problem);
// On the whole numbers of LayerCheck, as a share of the largest output: 0 where the sums must be exact. 16-bit weights hold
// such numbers too, and sums of kShortRun products of them are exact in f16.
double bound_on_whole_numbers(const Choice& choice);
// On random operands: the candidate's own bound; where it rounds weights to 16 bits, that share of every product, so of few
// products all of it, of many four deviations of their sum.
double bound_on_random(const Choice& choice, const Problem& problem);

}  // namespace sparkle
