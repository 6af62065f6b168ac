// What a backend may be able to do beside running programs: tell what runs of one take that were all handed over at once, by
// the device's own clock. One that can is a BurstClock. Times of a single submission hold what the device waits for the host
// where that hands launches over one by one, some microseconds each; these hold none of it.
#pragma once

#include <span>

#include "backends/backend.h"

namespace sparkle {

// How runs stand behind one another: `before` the first timestamp, so that the device has work while the host hands over the
// rest, then `runs` up to the second.
struct Burst {
  int runs = 1;
  int before = 1;
};

class BurstClock {
 public:
  virtual ~BurstClock() = default;
  // Seconds between the two timestamps over burst.runs, each run as Backend::submit() does it without timestamps; complete on
  // return. Errors: those of submit() and wait().
  virtual Result<double> seconds_of_run(const Program& program, std::span<Buffer* const> slots, const Burst& burst) = 0;
};

}  // namespace sparkle
