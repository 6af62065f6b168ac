// Which of several devices work on one stream of items together: all that take a part of it worth having, where that is
// predicted to be faster than the best alone. Arithmetic on predictions, device-free.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace sparkle {

struct DeviceAlone {
  std::string name;
  double seconds = 0;          // for an item on this device alone, transfers included; 0: nobody knows
  bool on_host_cores = false;  // the CPU, or a GPU's interface on the CPU's cores: of these one at a time is fast
  std::string unusable;        // why it cannot run the model; empty: it can
};

struct TogetherPolicy {
  // A device whose part of the items would be smaller is left out: what it brings is no more than what sharing may cost.
  double least_share = 0.05;
};

struct TogetherChoice {
  std::vector<bool> used;  // of the devices in their order; one at least where one is usable
  double seconds = 0;      // predicted for an item, of those used; 0: nobody knows
  std::string why;         // one line
};

TogetherChoice choose_together(const std::vector<DeviceAlone>& devices, const TogetherPolicy& policy = {});

// Threads for the CPU beside GPUs that each take so many seconds an item (0: nobody knows) and are fed by a thread of the host:
// one thread fewer for each GPU that brings more than that thread would, and never fewer than half of them. `cpu_seconds`: for
// an item on all threads.
int threads_beside(int threads, double cpu_seconds, const std::vector<double>& gpu_seconds);

}  // namespace sparkle
