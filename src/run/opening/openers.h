// What those who open backends share: the number in a device's name, and host threads, for packing and for kernels on the CPU.
#pragma once

#include <charconv>

#include "base/system/thread_pool.h"
#include "run/opening/open_backend.h"

namespace sparkle {

// The number of "KIND:2", as `sparkle devices` counts; nothing of "KIND" alone. Whether such a device is here is asked later: a
// name that is no name is an error on every machine. Errors: bad_usage.
inline Result<std::optional<size_t>> number_in(const std::string& name) {
  const size_t colon = name.find(':');
  if (colon == std::string::npos) return std::optional<size_t>();
  const char *begin = name.data() + colon + 1, *end = name.data() + name.size();
  size_t number = 0;
  const auto [read, failed] = std::from_chars(begin, end, number);
  if (failed != std::errc() || read != end)
    return Error{Reason::bad_usage, "'" + name + "' is no name of a device; write its number behind the colon, as in " +
                                        name.substr(0, colon) + ":0. 'sparkle devices' lists them."};
  return std::optional(number);
}

// The caller's threads, or a pool of our own.
inline std::shared_ptr<Executor> executor_of(const BackendOptions& o, int threads) {
  if (o.executor) return o.executor;
  ThreadPoolOptions pool;
  pool.threads = threads;
  pool.flush_denormals = true;
  return std::make_shared<ThreadPool>(pool);
}

}  // namespace sparkle
