#include "backends/vulkan/roofs_memory.h"

#include <algorithm>
#include <cmath>

#include "backends/vulkan/roof_runs.h"

namespace sparkle::vulkan {
namespace {

// Workgroups of a core that are all there at once: who waits for its turn would read its part of a working set alone.
constexpr uint32_t kThreads = 256, kGroupsOfCore = 4, kLeastGroups = 64, kThreadsOfCore = 1024;
constexpr int kVectorBytes = 16, kReadsInRound = 4, kSharedReadsInRound = 8;
constexpr double kProbeSeconds = 1e-3, kPasses = 4, kLeastSet = 1 << 19, kLargestSet = 1 << 30, kEnough = 1 << 26;
// Beyond any cache of today with room to spare; and a share of memory that is nearly always free.
constexpr double kShareOfMemory = 8;

// A step that spreads reads over the working set: all threads side by side where it is larger than what they read at once,
// else its golden section, in whole lines, so that no core comes back soon to what it has read.
int step_of(int64_t count, int64_t threads) {
  if (threads < count) return static_cast<int>(threads);
  return static_cast<int>(std::max<int64_t>(1, static_cast<int64_t>(0.618 * static_cast<double>(count)) / 64 * 64));
}

double largest_set(const Device& device) {
  auto bytes = static_cast<double>(device.memory.back().bytes);
  if (device.limits.max_buffer_bytes > 0)
    bytes = std::min(bytes, kShareOfMemory * static_cast<double>(device.limits.max_buffer_bytes));
  return std::clamp(bytes / kShareOfMemory, kLeastSet, is_software(device) ? 32.0 * (1 << 20) : kLargestSet);
}

}  // namespace

Result<std::vector<CurvePoint>> measure_read_curve(VulkanBackend& backend, const Workshop& shop, uint32_t groups,
                                                   uint32_t group_threads, std::span<const double> sets) {
  std::vector<CurvePoint> curve;
  if (sets.empty()) return curve;
  const double largest = *std::max_element(sets.begin(), sets.end());
  SPARKLE_TRY(from, backend.allocate(static_cast<int64_t>(largest), MemoryKind::device));
  SPARKLE_TRY(to, backend.allocate(64, MemoryKind::device));
  Buffer* const buffers[] = {from.get(), to.get()};
  const PipelineRequest request{"roof_levels", {group_threads, 1, 1}, 0};
  const int64_t threads = int64_t{groups} * group_threads;
  const double bytes_of_round = static_cast<double>(threads * kVectorBytes * kReadsInRound);
  for (const double set : sets) {
    const auto count = static_cast<int64_t>(set) / kVectorBytes;
    // One workgroup does not come round a large set: each run begins where none has read lately.
    int64_t start = 0;
    const int least = groups > 1 ? static_cast<int>(std::ceil(kPasses * set / bytes_of_round)) : 1;
    const auto kernel_of = [&](int rounds) {
      start = (start + static_cast<int64_t>(0.31 * static_cast<double>(count))) % count;
      return bare_kernel(shop, request, groups, 2,
                         {static_cast<int>(count), step_of(count, threads), static_cast<int>(start), rounds});
    };
    double best = 0;
    for (int repeat = 0; repeat < 2; ++repeat) {
      SPARKLE_TRY(seconds, seconds_of_round(backend, buffers, least, kProbeSeconds, kernel_of));
      if (seconds <= 0) return std::vector<CurvePoint>{};
      best = best > 0 ? std::min(best, seconds) : seconds;
    }
    curve.push_back({set, best / bytes_of_round});
  }
  return curve;
}

Result<double> measure_shared(VulkanBackend& backend, const Workshop& shop, uint32_t groups) {
  SPARKLE_TRY(to, backend.allocate(64, MemoryKind::device));
  Buffer* const buffers[] = {to.get()};
  const PipelineRequest request{"roof_shared", {kThreads, 1, 1}, 0};
  SPARKLE_TRY(seconds, seconds_of_round(backend, buffers, 16, kProbeSeconds,
                                        [&](int rounds) { return bare_kernel(shop, request, groups, 1, {rounds}); }));
  return seconds > 0 ? double{kVectorBytes} * kSharedReadsInRound * groups * kThreads / seconds : 0.0;
}

Status measure_memory(VulkanBackend& backend, const Workshop& shop, Device& device) {
  const double cores = std::max(1, device.cores);
  if (MemoryLevel& shared = device.memory.front(); shared.filled_by_hand) {
    SPARKLE_TRY(rate, measure_shared(backend, shop, groups_of(device)));
    shared.total_bytes_per_second = rate, shared.bytes_per_second = rate / cores;
  }
  if (is_software(device)) return ok();
  const auto groups = std::max(kLeastGroups, static_cast<uint32_t>(cores) * kGroupsOfCore);
  double largest = largest_set(device);
  auto curve = measure_read_curve(backend, shop, groups, kThreads, working_sets(kLeastSet, largest));
  // Others may have taken most of the memory.
  for (; !curve.ok() && !backend.lost() && largest > kEnough; largest /= 2)
    curve = measure_read_curve(backend, shop, groups, kThreads, working_sets(kLeastSet, largest / 2));
  SPARKLE_CHECK(curve);
  const std::vector<CurveLevel> levels = levels_of(*curve);
  if (levels.empty()) return ok();
  // What one core reads of each level, from a working set that only this level holds.
  std::vector<double> sets, rates;
  for (size_t i = 0; i + 1 < levels.size(); ++i)
    sets.push_back(i > 0 ? std::sqrt(levels[i - 1].bytes * levels[i].bytes) : levels[i].bytes / 2);
  sets.push_back(largest);
  if (device.cores > 1) {
    const int most = device.limits.max_threads_per_group;
    const uint32_t threads = most > 0 ? std::min(kThreadsOfCore, static_cast<uint32_t>(most)) : kThreads;
    SPARKLE_TRY(alone, measure_read_curve(backend, shop, 1, threads, sets));
    for (const CurvePoint& p : alone) rates.push_back(1 / p.seconds_per_byte);
  }
  put_caches(device, levels, rates);
  MemoryLevel& dram = device.memory.back();
  if (!rates.empty()) dram.bytes_per_second = std::clamp(rates.back(), dram.bytes_per_second, dram.total_bytes_per_second);
  return ok();
}

}  // namespace sparkle::vulkan
