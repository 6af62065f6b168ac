// What rounding does to a model that reads its own outputs, as one that makes video frame by frame: the passes of two models,
// each fed back on itself, compared pass by pass.
#pragma once

#include "run/session.h"

namespace sparkle {

// Outputs of each pass, each brought to mean 0 and deviation 1 over all of its elements. The next pass reads them: every input
// takes the first output of its type and shape, with `noise` of its deviation from seeded normal values in their place, so that
// no model comes to rest; other inputs stay as they are. Errors: bad_usage where no output fits an input; internal where one
// holds NaN, infinities or the same number everywhere; those of running.
Result<std::vector<std::vector<HostTensor>>> passes_of(Session& session, std::vector<HostTensor> inputs, int passes,
                                                       double noise);

struct Drift {
  double error = 0;    // root of the mean square of the difference; what is compared has deviation 1
  double largest = 0;  // largest difference, as a share of the largest value
};
// Of each pass, the worst output. Errors: bad_input where the two have other outputs.
Result<std::vector<Drift>> drift_of(const std::vector<std::vector<HostTensor>>& passes,
                                    const std::vector<std::vector<HostTensor>>& exact);

}  // namespace sparkle
