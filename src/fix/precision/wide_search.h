// Which layers stay wide so that the outputs are close enough to the original's, and no more of them than that takes.
#pragma once

#include <functional>
#include <vector>

#include "fix/proof/sensitivity.h"

namespace sparkle::fix {

struct WideSearch {
  std::function<Result<Proof>(const Layers& wide)> attempt;  // the proof of the model with these layers wide
  std::function<bool(const Proof&)> good;
  int most_tries = 14;  // to find a set that is good, and as many again to make it smaller
};

struct WideChoice {
  std::vector<const LayerGroup*> groups;
  Proof proof;  // of these; where none is good, of the last that was tried
  bool good = false;
};

// `groups`: with their errors, each alone. First more and more of them, the most harmful for their multiplications first: each
// time so many that 0.7 of the squared error of the time before is left, later half of those that are narrow. Then back with
// those that the outputs can bear after all, the least harmful first: errors of layers neither add up nor point one way.
// Errors: what attempts say.
Result<WideChoice> choose_wide(const std::vector<LayerGroup>& groups, const WideSearch& search);

Layers layers_of(const std::vector<const LayerGroup*>& groups);

}  // namespace sparkle::fix
