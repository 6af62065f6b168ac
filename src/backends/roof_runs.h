// What measurements of rates on GPUs share: kernels without a stage, timed by the device's own clock.
#pragma once

#include <algorithm>
#include <span>

#include "backends/backend.h"

namespace sparkle {

// Device seconds of each of `kernels`, run one after the other on the same buffers: inputs, and the output last.
Result<std::vector<double>> timed(Backend& backend, std::span<const Kernel* const> kernels, std::span<Buffer* const> buffers);

inline constexpr int kMostRoofRounds = 1 << 20;

// Seconds of a round, of as many rounds as take about `seconds`, `least` at least. `kernel_of(int rounds)`: a kernel for so
// many rounds, a Result of a unique_ptr; two are run, and the second counts: a driver may compile the first on its way. 0
// without a clock.
template <class KernelOf>
Result<double> seconds_of_round(Backend& backend, std::span<Buffer* const> buffers, int least, double seconds,
                                const KernelOf& kernel_of) {
  for (int rounds = std::clamp(least, 1, kMostRoofRounds);;) {
    SPARKLE_TRY(first, kernel_of(rounds));
    SPARKLE_TRY(second, kernel_of(rounds));
    const Kernel* const kernels[] = {first.get(), second.get()};
    SPARKLE_TRY(taken, timed(backend, kernels, buffers));
    if (taken[1] <= 0) return 0.0;
    if (taken[1] >= seconds / 2 || rounds >= kMostRoofRounds) return taken[1] / rounds;
    rounds =
        static_cast<int>(std::clamp(rounds * seconds / taken[1], 2.0 * rounds, std::min(64.0 * rounds, 1.0 * kMostRoofRounds)));
  }
}

}  // namespace sparkle
