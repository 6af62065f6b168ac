// Where the inputs of a HostOp's bodies stand among the operator's own.
#pragma once

#include "graph/graph.h"

namespace sparkle {

struct HostInputs {
  size_t formals = 0;     // inputs of the body that the specification names
  size_t first_read = 0;  // the operator's input that is the first of those which the body reads of the graph around it
  size_t read = 0;        // how many these are: the last inputs of the body
};

// Of body number `body`.
inline HostInputs host_inputs(const Op& op, size_t body) {
  const auto& p = std::get<HostOp>(op.params);
  HostInputs at;
  at.first_read = static_cast<size_t>(p.own);
  for (size_t b = 0; b <= body; ++b) {
    const size_t all = p.bodies[b]->inputs.size();
    // A branch has no inputs of its own, a loop's body as many as the loop, and so has a scan's.
    at.formals = p.kind == HostKind::branch ? 0 : static_cast<size_t>(p.own);
    at.read = all - at.formals;
    if (b < body) at.first_read += at.read;
  }
  return at;
}

}  // namespace sparkle
