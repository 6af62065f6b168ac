// The variants "flash" and "flash_fma" of CUDA: blocks of queries over blocks of keys with a running maximum and sum.
#pragma once

#include <optional>
#include <string>

#include "families/attention/flash_tiles.h"
#include "families/family.h"

namespace sparkle {

// The kernel of a schedule, whose grain is the queries of a block.
struct FlashTile {
  std::string kernel;           // "flash_128x64_f16"
  int queries = 0, keys = 0;    // of a block
  int size = 0;                 // that columns, and on matrix units depth, are filled up to
  int threads = 0, strips = 0;  // strips: groups of queries that read keys and values of shared memory on their own
  int64_t shared_bytes = 0;
};
// Nothing: another variant, or no kernel for the stage's sizes or types.
std::optional<FlashTile> flash_tile(const Stage& stage, const Schedule& schedule);

// Whether rows are runs of 16 bytes that begin at such: what asynchronous copies and wide stores take.
bool in_chunks(const TensorDesc& rows);

std::vector<Schedule> flash_schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not);
void flash_footprint(const Stage& stage, const Schedule& schedule, const Device& device, Footprint& f);

}  // namespace sparkle
