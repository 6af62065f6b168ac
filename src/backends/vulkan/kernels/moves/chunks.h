// What the kernels that move chunks of 1 to 16 bytes share (glsl/chunks.glsl): their shaders by width, and how work is cut.
#pragma once

#include "backends/vulkan/kernels/divisor.h"
#include "backends/vulkan/kernels/vulkan_kernel.h"
#include "families/loops/chunk_move.h"

namespace sparkle::vulkan {

inline constexpr int kChunkThreads = 128;  // of a workgroup
inline constexpr int kChunkSteps = 4;      // chunks a thread
// An axis that leads nowhere, in the tables of indexed moves.
inline constexpr int32_t kNowhere = INT32_MIN;

// The axes of a move as shaders read them.
struct ChunkAxes {
  Divisor size[kMaxRank];
  int32_t x[kMaxRank], y[kMaxRank];
};
ChunkAxes chunk_axes(const std::vector<ChunkAxis>& axes);

// The pipeline of shader NAME_bytes. `constants`: those behind the workgroup's size. Errors: type_not_served where the device
// does not store elements of 8 or 16 bits, and what the driver says.
Result<const Pipeline*> chunk_pipeline(const Workshop& shop, const std::string& name, int64_t bytes, int threads,
                                       std::vector<uint32_t> constants = {});
std::array<uint32_t, 3> groups_for_chunks(int64_t chunks);

// How many elements element (0,...,0) lies behind the one that lies first in memory.
int64_t before_first(const TensorDesc& desc);

// layout_not_served: more than 2^31 chunks.
Error too_far(std::string_view what);

}  // namespace sparkle::vulkan
