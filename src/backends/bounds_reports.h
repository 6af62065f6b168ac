// BoundsReports: what kernels of GPUs find in their data against their families' rules (indices outside of their axis). They
// write it into memory that the host reads when the work is complete; who waits for the work gets it as an error. Nothing is
// written where there is nothing to say.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace sparkle {

inline constexpr uint32_t kMostSeen = 16;

// As in vulkan/glsl/bounds_reports.glsl and cuda/kernels/moves/gather.cu.
struct BoundsReports {
  uint32_t first = UINT32_MAX, taken = 0;
  struct {
    uint32_t number = 0;
    int32_t low = 0, high = 0;
  } seen[kMostSeen];
};

// What a bounds report of a kernel means: the number of the element that breaks the rule, in row-major order, and its value.
using BoundsError = std::function<Error(int64_t number, int64_t value)>;
struct ReportingLaunch {
  std::string node;
  BoundsError error;
};

// The bounds report of the first launch that has one; all are wiped away.
std::optional<Error> take_bounds_report(std::span<BoundsReports> bounds_reports, const std::vector<ReportingLaunch>& launches);

}  // namespace sparkle
