// Memory of weights: buffers that live as long as their session lie side by side in slabs, so that large pages serve the small
// ones too. A slab goes when the last of its buffers has gone.
#pragma once

#include <memory>
#include <mutex>

#include "backends/backend.h"

namespace sparkle::cpu {

class WeightSlabs {
 public:
  // Aligned to a cache line. nullptr where memory runs out.
  std::shared_ptr<Buffer> allocate(int64_t bytes);

 private:
  struct Slab;
  class Part;
  std::mutex mutex_;
  std::weak_ptr<Slab> open_;  // the slab that still has room
};

}  // namespace sparkle::cpu
