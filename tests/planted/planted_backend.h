// For tests: a backend with kernels that are wrong in ways that a benchmark may fail to see. Nothing of it is in the
// library or in the command.
#pragma once

#include <optional>

#include "backends/backend.h"

namespace sparkle::testing {

enum class Fault {
  nothing,   // computes nothing
  half,      // writes the first half of the rows
  fourth,    // reads every fourth channel
  inherits,  // the first kernel for an output of some size is right; later ones write nothing, into memory that is recycled as
             // it is
  first_only,     // right on its first run; computes nothing from then on
  low_peak,       // right, and takes a millionth of the time that its operations need, as far as the probe beside can tell
  low_bandwidth,  // the same of the bytes
};
std::optional<Fault> fault_named(std::string_view name);

// Whether it needs a backend whose memory the host sees and whose work is done when submit() returns.
bool needs_host_memory(Fault fault);
// `inner`: the CPU backend, or any other where the fault does not need that.
std::shared_ptr<Backend> plant(std::shared_ptr<Backend> inner, Fault fault);

}  // namespace sparkle::testing
