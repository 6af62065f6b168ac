// Blocking: how a stage is cut for the memory levels of a device, in words and bytes that follow from its schedule: what stays
// near while the loops inside of it run, what fills the lanes, what is on its way meanwhile, what is computed on the way.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"
#include "families/stage.h"

namespace sparkle {

// The place of sums, which no Device lists as a level of memory.
inline constexpr std::string_view kRegisters = "registers";

// What the loops inside touch again and again.
struct BlockingTile {
  std::string what;    // "sums of 6 pixels x 64 filters"
  double bytes = 0;    // of a thread's (on matrix units a subgroup's) registers, a workgroup's shared memory, a core's caches
  std::string level;   // kRegisters or a level of the device; empty: the innermost cache that has room for it
  bool whole = false;  // all operands

  bool is_named() const { return !level.empty(); }
};

struct Blocking {
  std::vector<BlockingTile> tiles;  // innermost first
  std::string vectorised;           // "16 filters in each avx512 vector"
  std::string in_flight;            // what is fetched while something else is computed
  std::vector<std::string> fused;   // what is done on the way, without a pass of its own
};

// Where a tile lies: its level, or the innermost cache that has room for it; the last level where none has.
std::string level_of(const BlockingTile& tile, const Device& device);

// What families say in the same words.
// All operands, each once: what the outermost loop touches.
BlockingTile all_operands(const Stage& stage);
// What fills the lanes of a unit of the device, by its own sizes: `what` in each vector, or in each thread of a subgroup.
std::string lanes_of(const Device& device, std::string_view unit, std::string_view what);
// Where no kernel fetches ahead: hardware does, or other subgroups compute meanwhile.
std::string nothing_fetched(const Device& device);
// What families do that pass over their operands once.
Blocking streaming_blocking(const Stage& stage, const Schedule& schedule, const Device& device);
// "1 row", "7 rows".
std::string counted(int64_t count, std::string_view thing);

}  // namespace sparkle
