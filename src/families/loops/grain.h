// Task grain: how much work a task on a CPU takes. Families cut a stage into tasks for a device and write the grain into its
// schedule; kernels only execute it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "device/device.h"

namespace sparkle {

// What is worth a task: some 5 us, sixteen times what handing it over costs (0.3 us). Moved bytes, elements through a few
// instructions each, products of fp32 that are gathered or come in register tiles.
inline constexpr double kLeastBytes = 65536, kLeastElements = 4096, kLeastProducts = 262144, kLeastTileProducts = 1048576;

// Tasks of at least `least` of the work for a device, at most `each` per core: a few even out what delays one of them.
inline int64_t planned_tasks(double work, double least, int64_t each, const Device& device) {
  if (device.cores <= 1 || !(work >= 2 * least)) return 1;
  return static_cast<int64_t>(std::min(work / least, static_cast<double>(each * device.cores)));
}

// The same where all tasks take equally long: as many for each core, since three tasks on two cores take as long as four.
inline int64_t even_tasks(double work, double least, int64_t each, const Device& device) {
  const int64_t tasks = planned_tasks(work, least, each, device), cores = std::max(1, device.cores);
  return tasks > cores ? tasks / cores * cores : tasks;
}

// The grain that cuts `elements` into so many tasks.
inline int64_t grain_of(int64_t elements, int64_t tasks) {
  return std::max<int64_t>(1, (elements + tasks - 1) / std::max<int64_t>(1, tasks));
}

// What kernels do with it: tasks for `items` that cannot be cut and make `elements` together. Only schedules that no family
// made have no grain: four tasks for each of `width` workers then.
inline int64_t tasks_of(int64_t grain, int64_t elements, int64_t items, int64_t width) {
  const int64_t wanted = grain > 0 ? (elements + grain - 1) / grain : width <= 1 ? 1 : 4 * width;
  return std::clamp<int64_t>(wanted, 1, std::max<int64_t>(1, items));
}

// Operands that are laid out anew in every run, beside what a schedule says: no task moves less than is worth it, and each of
// `width` workers gets at most four.
inline int64_t moving_tasks(int64_t bytes, int64_t items, int64_t width) {
  return std::clamp<int64_t>(bytes / static_cast<int64_t>(kLeastBytes), 1, std::clamp<int64_t>(items, 1, 4 * width));
}

}  // namespace sparkle
