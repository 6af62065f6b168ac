// Levels: what a plan does with each level of a machine's memory, step by step: the tile that stays there, what passes through
// and how often it is used, what fills the lanes, what is on its way meanwhile, what is fused. Plans of several machines stand
// side by side: the same patterns on a CPU and on a GPU.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "families/blocking.h"
#include "plan/plan.h"

namespace sparkle {

// One level of memory, or the registers.
struct LevelUse {
  std::string level;
  int64_t capacity = 0;             // bytes of one instance; 0: unknown, or registers
  std::vector<BlockingTile> tiles;  // that stay here, the smallest first
  double bytes = 0;                 // that pass from here to the next inner level: the footprint's
  // How often a byte is used that comes in: read from here by the next inner level; of registers, in floating-point
  // operations. 0: nothing comes in, what is here stays from one run to the next.
  double reuse = 0;
};

struct StepLevels {
  std::vector<LevelUse> levels;  // registers first, then the device's
  std::string vectorised, in_flight;
  std::vector<std::string> fused;
};
StepLevels levels_of(const PlanStep& step, const Device& device);

struct DevicePlan {
  std::string called;  // "xeon-emr": what the user calls the device
  Device device;
  Plan plan;
};

// Steps that share nodes of the model, each device's in the order of its plan: [device][step]. `name`: only those where a
// step is called so, or where none is, where the name of a step contains it.
using SameWork = std::vector<std::vector<const PlanStep*>>;
std::vector<SameWork> same_work(std::span<const DevicePlan> plans, const std::string& name);

// For people, a column for each device.
std::string levels_text(std::span<const DevicePlan> plans, const std::string& name);
// {"model", "devices": [{"called", "device", "calibrated"}], "layers": [{"devices": [[STEP, ...], ...]}]}, the steps of each
// device in the order of "devices".
std::string levels_json(std::span<const DevicePlan> plans, const std::string& name);

}  // namespace sparkle
