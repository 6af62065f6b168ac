// How devices that work on one queue of items share it: each takes the next when it has room, unless the others would be done
// with all that is left before it. So the end does not wait for the slowest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sparkle {

struct Worker {
  double seconds = 0;  // for an item, as measured so far; 0: not yet known
  int under_way = 0;
  bool gone = false;  // lost: it takes nothing more
};

// Whether worker `me` should take the next of `left` items; `left` < 0: nobody knows how many there are. At least one of the
// workers that have nothing under way says yes.
bool takes_next(const std::vector<Worker>& workers, size_t me, int64_t left);

// The share of what the workers could do together, each as fast as alone, that they did: seconds for `items` items.
double efficiency(const std::vector<double>& seconds_alone, int64_t items, double seconds_together);

}  // namespace sparkle
