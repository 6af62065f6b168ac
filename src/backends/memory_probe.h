// What a backend may be able to do beside running programs: tell the bandwidth of its memory at this moment. One that can is a
// MemoryProbe too.
#pragma once

#include <cstddef>

namespace sparkle {

class MemoryProbe {
 public:
  virtual ~MemoryProbe() = default;
  // Bytes per second of a level (its place in Device::memory) when all cores read from it, or read and write, whichever is
  // more; 0 where it cannot be told. Takes about 2 ms.
  virtual double probe_bandwidth(size_t level) = 0;
};

}  // namespace sparkle
