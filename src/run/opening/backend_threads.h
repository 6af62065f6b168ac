// Host threads of a backend that is opened: for packing, and for kernels on the CPU.
#pragma once

#include "base/system/thread_pool.h"
#include "run/opening/open_backend.h"

namespace sparkle {

// The caller's threads, or a pool of our own.
inline std::shared_ptr<Executor> executor_of(const BackendOptions& o, int threads) {
  if (o.executor) return o.executor;
  ThreadPoolOptions pool;
  pool.threads = threads;
  pool.flush_denormals = true;
  return std::make_shared<ThreadPool>(pool);
}

}  // namespace sparkle
