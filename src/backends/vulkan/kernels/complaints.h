// Complaints: what kernels find in their data against their families' rules (indices outside of their axis). They write it into
// memory that the host sees; who waits for the work gets it as an error. Nothing is written where there is nothing to say.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backends/vulkan/driver/memory.h"

namespace sparkle::vulkan {

inline constexpr uint32_t kMostSeen = 16;

// As in glsl/complaints.glsl.
struct Complaints {
  uint32_t first = UINT32_MAX, taken = 0;
  struct {
    uint32_t number = 0;
    int32_t low = 0, high = 0;
  } seen[kMostSeen];
};

// What a complaint of a kernel means: the number of the element that breaks the rule, in row-major order, and its value.
using Complainant = std::function<Error(int64_t number, int64_t value)>;
struct ComplainingLaunch {
  std::string node;
  Complainant error;
};

// Host-visible memory for so many launches, without complaints.
Result<std::shared_ptr<DeviceBuffer>> make_complaints(Memory& memory, size_t launches);
// The complaint of the first launch that has one; all are wiped away.
std::optional<Error> take_complaint(DeviceBuffer& complaints, const std::vector<ComplainingLaunch>& launches);

}  // namespace sparkle::vulkan
