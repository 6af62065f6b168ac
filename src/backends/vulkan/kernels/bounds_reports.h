// BoundsReports: what kernels find in their data against their families' rules (indices outside of their axis). They write it
// into memory that the host sees; who waits for the work gets it as an error. Nothing is written where there is nothing to say.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backends/vulkan/driver/memory.h"

namespace sparkle::vulkan {

inline constexpr uint32_t kMostSeen = 16;

// As in glsl/bounds_reports.glsl.
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

// Host-visible memory for so many launches, without bounds reports.
Result<std::shared_ptr<DeviceBuffer>> make_bounds_reports(Memory& memory, size_t launches);
// The bounds report of the first launch that has one; all are wiped away.
std::optional<Error> take_bounds_report(DeviceBuffer& bounds_reports, const std::vector<ReportingLaunch>& launches);

}  // namespace sparkle::vulkan
