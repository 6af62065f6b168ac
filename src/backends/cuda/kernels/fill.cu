// Words of device memory set to one value: counters before their first use, and the simplest kernel there is.
#include "backends/cuda/kernels/fill_record.h"
#include "backends/cuda/ptx/memory.cuh"
#include "backends/cuda/ptx/threads.cuh"

using namespace sparkle::cuda;

SPARKLE_KERNEL(sparkle_fill_words, FillRecord, kFillThreads, 1) {
  const uint64_t stride = uint64_t{grid_x()} * block_threads();
  for (uint64_t i = uint64_t{block_x()} * block_threads() + thread_id(); i < record.count; i += stride) {
    store_global(record.to + i, record.value);
  }
}
