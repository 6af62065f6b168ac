// Copies into the usual layout and out of it that steps can do without: pictures come as planes of a few channels, which the
// direct kernels lay into their scratch as well as pixels; pools alone between planes work on these, and so do CUDA's kernels
// for convolutions of a few channels.
#pragma once

#include <functional>

#include "plan/choose/blocks.h"

namespace sparkle {

// Drops copies that one convolution alone reads where choosing for the operand as it lies gives a cheaper candidate than copy
// and convolution together, and those around a pool or such a convolution likewise; that step then stands in the place of the
// draft's. `choice_of`: the choice for a step.
void eliminate_copies(const Draft& draft, const std::function<Result<Choice>(const DraftStep&)>& choice_of,
                      std::vector<ChosenStep>& steps);

}  // namespace sparkle
