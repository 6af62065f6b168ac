// What the device does in a second at this moment, by small kernels whose work is counted: peaks of math units and bandwidths
// of memories. Rates that are measured beside are held against these (docs/decisions/0020-roofs-that-judge.md).
#pragma once

#include "backends/cuda/cuda_backend.h"

namespace sparkle::cuda {

// A kernel of kernels/roofs, and what a block of it does in a round.
struct RoofKernel {
  std::string name;
  int64_t shared_bytes = 0;
  uint32_t ones = 0;
  double flops = 0;
};
// Of a unit by its name in the device's description; nullptr: there is none.
const RoofKernel* roof_kernel_of(std::string_view unit);

// Memory that probes keep from one to the next.
struct RoofBuffers {
  std::shared_ptr<Buffer> from, copied, to;
};

// What one launch needs. `count`: vectors of 16 bytes. Operands: from, copied, to.
Result<CudaKernelPtr> roof_launch(const Workshop& shop, const RoofKernel& kernel, unsigned blocks, uint32_t count, int rounds);

// Flops per second of all cores; 0 where the unit has no kernel or the device keeps no time. `blocks`: 0: what keeps the device
// busy.
Result<double> measure_flops(Backend& backend, const Workshop& shop, RoofBuffers& kept, std::string_view unit,
                             unsigned blocks = 0);
// Bytes per second of a level (its place in Device::memory) when all cores read, or read and write, whichever is more. `bytes`:
// the working set, which the level holds.
Result<double> measure_bandwidth(Backend& backend, const Workshop& shop, RoofBuffers& kept, size_t level, double bytes,
                                 unsigned blocks = 0);

}  // namespace sparkle::cuda
