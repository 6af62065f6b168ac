// What a session tells of an output before it runs: the real sizes where a model declares others, which tools that change a
// model leave behind.
#pragma once

#include "graph/graph.h"
#include "run/session.h"

namespace sparkle {

// Sizes that are open on either side stay as declared.
inline void correct_sizes(SessionInput& declared, const GraphTensor& real) {
  bool fits = !declared.rank_known || declared.shape.size() == real.shape.size();
  for (int a = 0; fits && declared.rank_known && a < real.shape.size(); ++a)
    fits = declared.shape[a] < 0 || declared.shape[a] == real.shape[a];
  if (fits || real.open) return;
  declared.shape = real.shape;
  declared.axis_names = {};
}

}  // namespace sparkle
