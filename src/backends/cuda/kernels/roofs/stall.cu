// A stream kept busy for a while: what the host puts in meanwhile is there when its turn comes, and the times between events
// hold nothing of the host's.
#include "backends/cuda/kernels/roofs/stall_record.h"
#include "backends/cuda/ptx/clock.cuh"

using namespace sparkle::cuda;

SPARKLE_KERNEL(sparkle_stall, StallRecord, 1, 1) {
  const uint64_t begin = nanoseconds();
  while (nanoseconds() - begin < record.nanoseconds) {
  }
}
