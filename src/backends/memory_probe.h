// What a backend may be able to do beside running programs: tell the bandwidth of its memory at this moment. One that can is a
// MemoryProbe too.
#pragma once

#include <cstddef>

namespace sparkle {

class MemoryProbe {
 public:
  virtual ~MemoryProbe() = default;
  // Whether Device::memory has all caches. Else what is kept where is known only by its size, as on GPUs, whose drivers do not
  // tell of caches: a probe then moves as many bytes as the work that it stands beside.
  virtual bool knows_caches() const { return true; }
  // Bytes per second of a level (its place in Device::memory) when all cores read from it, or read and write, whichever is
  // more; 0 where it cannot be told. `bytes`: the working set, where caches are not known. Takes a few milliseconds.
  virtual double probe_bandwidth(size_t level, double bytes) = 0;
  // Gives back what probes keep from one to the next.
  virtual void forget_probes() {}
};

}  // namespace sparkle
