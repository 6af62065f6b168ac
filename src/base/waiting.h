// What a caller waits for, for whoever shows it: shaders that a driver compiles, kernels tried before their first use. Silent
// until somebody listens.
#pragma once

#include <atomic>
#include <cstddef>

namespace sparkle {

// `done` of `total`; done == total: it is over. Called from any thread.
using WaitingSink = void (*)(const char* what, size_t done, size_t total);

inline std::atomic<WaitingSink> waiting_sink{nullptr};  // nullptr: nobody listens

inline void set_waiting(WaitingSink sink) { waiting_sink = sink; }
inline void tell_waiting(const char* what, size_t done, size_t total) {
  if (const WaitingSink to = waiting_sink) to(what, done, total);
}

}  // namespace sparkle
